// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"context"
	"crypto"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/payloads"
	"github.com/ovh/kmip-go/ttlv"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// object has the attributes of an object of a key manager.
type object struct {
	id   string
	name string // empty if the object has none of the attributes Name that was asked for
	kind kmip.ObjectType
	// state is 0 for objects without a state.
	state     kmip.State
	algorithm kmip.CryptographicAlgorithm
	bits      int
	activated time.Time
	made      time.Time
	links     []kmip.Link
	// position is the place of the object in the answer of the server.
	position int
}

func (o *object) isAES() bool {
	return o.kind == kmip.ObjectTypeSymmetricKey && o.algorithm == kmip.CryptographicAlgorithmAES
}
func (o *object) isPrivateKey() bool  { return o.kind == kmip.ObjectTypePrivateKey }
func (o *object) isPublicKey() bool   { return o.kind == kmip.ObjectTypePublicKey }
func (o *object) isCertificate() bool { return o.kind == kmip.ObjectTypeCertificate }

// isActive reports whether the object may protect new data (KMIP 1.4, section 3.22).
func (o *object) isActive() bool { return o.state == kmip.StateActive }

// mayUnprotect reports whether the object may be used for data that is protected already. A
// compromised key may be used, because its data has to be read once more to protect it with
// another key.
func (o *object) mayUnprotect() bool {
	return o.state == kmip.StateActive || o.state == kmip.StateDeactivated || o.state == kmip.StateCompromised
}

// since returns when the object became active, or the zero time if the server does not say it.
func (o *object) since() time.Time {
	if o.activated.IsZero() {
		return o.made
	}
	return o.activated
}

func (o *object) stateText() string {
	if o.state == 0 {
		return "none"
	}
	return ttlv.EnumStr(o.state)
}

func (o *object) describe() string {
	if o.algorithm == 0 {
		return ttlv.EnumStr(o.kind)
	}
	return ttlv.EnumStr(o.kind) + " of the algorithm " + ttlv.EnumStr(o.algorithm)
}

// link returns the id of the object that this one links to, or the empty string.
func (o *object) link(kind kmip.LinkType) string {
	for _, link := range o.links {
		if link.LinkType == kind {
			return link.LinkedObjectIdentifier
		}
	}
	return ""
}

// publicKey returns the public key of a version: the version itself, what it links to, or the
// only public key with the same Name.
func (s *Session) publicKey(ctx context.Context, id string, version *object, found []*object) (crypto.PublicKey, error) {
	from := version.id
	if version.isPrivateKey() {
		if from = version.link(kmip.LinkTypePublicKeyLink); from == "" {
			for _, o := range found {
				if !o.isPublicKey() {
					continue
				}
				if from != "" {
					return nil, fmt.Errorf("%w: %s has several public keys with its Name and no link to one, expected a link", keys.ErrUnusable, id)
				}
				from = o.id
			}
		}
		if from == "" {
			return nil, fmt.Errorf("%w: %s has no public key, expected one with the same Name or a link to it", keys.ErrUnusable, id)
		}
	}
	reply, err := call[*payloads.GetResponsePayload](ctx, s, from, &payloads.GetRequestPayload{UniqueIdentifier: from})
	if err != nil {
		return nil, err
	}
	object, ok := reply.Object.(*kmip.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%w: %s is the target of a link to a public key, but is no public key", keys.ErrUnusable, from)
	}
	var public crypto.PublicKey
	err = guarded(func() (err error) {
		public, err = object.CryptoPublicKey()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: the public key %s: %w", keys.ErrUnusable, from, err)
	}
	return public, nil
}

// certificates returns the certificate of a key: the certificate that the key links to, or a
// certificate with the same Name that belongs to the key. It returns nil if there is none.
func (s *Session) certificates(ctx context.Context, version *object, found []*object, public crypto.PublicKey) ([]*x509.Certificate, error) {
	var from []string
	if id := version.link(kmip.LinkTypeCertificateLink); id != "" {
		from = append(from, id)
	}
	for _, o := range found {
		if o.isCertificate() {
			from = append(from, o.id)
		}
	}
	for _, id := range from {
		reply, err := call[*payloads.GetResponsePayload](ctx, s, id, &payloads.GetRequestPayload{UniqueIdentifier: id})
		if err != nil {
			return nil, err
		}
		object, ok := reply.Object.(*kmip.Certificate)
		if !ok {
			continue
		}
		var certificate *x509.Certificate
		err = guarded(func() (err error) {
			certificate, err = object.X509Certificate()
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%w: the certificate %s: %w", keys.ErrUnusable, id, err)
		}
		if engine.SamePublicKey(public, certificate.PublicKey) {
			return []*x509.Certificate{certificate}, nil
		}
	}
	return nil, nil
}
