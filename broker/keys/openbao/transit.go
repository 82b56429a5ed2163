// SPDX-License-Identifier: Apache-2.0

package openbao

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
)

// Transit is the provider of the keys of a Transit engine. The keys never leave the server. The
// version of a key is its version in Transit, in decimal digits.
type Transit struct{ *manager }

var _ keys.Creator = (*Transit)(nil)

// reading is the server's description of a key.
type reading struct {
	Data struct {
		Type    string `json:"type"`
		Latest  int    `json:"latest_version"`
		Derived bool   `json:"derived"`
		Deleted bool   `json:"soft_deleted"`
		Signs   bool   `json:"supports_signing"`
		// Keys has the versions that can be used. A version of a symmetric key is the time
		// when it was made.
		Keys map[string]json.RawMessage `json:"keys"`
	} `json:"data"`
}

// asymmetric is a version of a key pair.
type asymmetric struct {
	Public string `json:"public_key"`
	Chain  string `json:"certificate_chain"`
}

// aesTypes are the types of AES keys with their sizes in bytes.
var aesTypes = map[string]int{"aes128-gcm96": 16, "aes256-gcm96": 32}

// transitName reports whether Transit can have a key with this id.
func transitName(id string) bool {
	return id != "." && id != ".." && id != "" && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}

func (t *Transit) find(ctx context.Context, name keys.Name, _ *keys.Key) (*keys.Key, error) {
	if !transitName(name.ID) {
		return nil, keys.ErrNotFound
	}
	var found reading
	if err := t.call(ctx, pool.Repeatable, http.MethodGet, t.mount+"/keys/"+name.ID, nil, &found); err != nil {
		return nil, err
	}
	version := strconv.Itoa(found.Data.Latest)
	if name.Version != "" {
		version = name.Version
	}
	content, ok := found.Data.Keys[version]
	if !ok {
		return nil, fmt.Errorf("%w: the key %s of Transit has no version %q that may be used", keys.ErrNotFound, name.ID, version)
	}
	number, err := strconv.Atoi(version)
	if err != nil {
		return nil, fmt.Errorf("%w: the key %s of Transit has the version %q, expected a number", keys.ErrUnusable, name.ID, version)
	}
	switch {
	case found.Data.Deleted:
		return nil, fmt.Errorf("%w: the key %s of Transit is marked as deleted", keys.ErrUnusable, name.ID)
	case found.Data.Derived:
		return nil, fmt.Errorf("%w: the key %s of Transit is for derivation, expected a key without \"derived\"", keys.ErrUnusable, name.ID)
	}
	if size, aes := aesTypes[found.Data.Type]; aes {
		c := &transitCipher{transitKey{t, name.ID, number}, size, nil}
		if name.Version == "" {
			c.older = olderVersions(found.Data.Keys, number)
		}
		return keys.NewRemoteSymmetric(name.ID, c).WithVersion(version).
			WithWrapper(&transitWrapper{c.transitKey}), nil
	}
	if !found.Data.Signs {
		return nil, fmt.Errorf("%w: the key %s of Transit has the type %q, expected aes128-gcm96, aes256-gcm96, or a type that signs", keys.ErrUnusable, name.ID, found.Data.Type)
	}
	var pair asymmetric
	if err := json.Unmarshal(content, &pair); err != nil {
		return nil, fmt.Errorf("%w: the key %s of Transit has no public key that can be read", keys.ErrUnusable, name.ID)
	}
	public, chain, err := pair.parse()
	if err != nil {
		return nil, fmt.Errorf("%w: the key %s of Transit %w", keys.ErrUnusable, name.ID, err)
	}
	// Transit stores no certificate of an authority for a key, so the credentials may have it.
	if given := t.certificates.Of(name.ID); given != nil {
		chain = given
	}
	key, err := keys.NewRemoteSigning(name.ID, public, &transitSigner{transitKey{t, name.ID, number}, public}, chain)
	if err != nil {
		return nil, fmt.Errorf("%w: the key %s of Transit: %w", keys.ErrUnusable, name.ID, err)
	}
	return key.WithVersion(version), nil
}

// parse returns the public key and its certificates, if there are any. Its error continues a
// sentence that begins with the name of the key.
func (a *asymmetric) parse() (crypto.PublicKey, []*x509.Certificate, error) {
	var public crypto.PublicKey
	raw, err := base64.StdEncoding.DecodeString(a.Public)
	if err == nil && len(raw) == ed25519.PublicKeySize { // such a key is not in PEM
		public = ed25519.PublicKey(raw)
	} else if public, _, err = keys.ParseVerifier([]byte(a.Public), algorithm.MaxRSASize); err != nil {
		return nil, nil, err
	}
	if a.Chain == "" {
		return public, nil, nil
	}
	chain, err := keys.ParseCertificates([]byte(a.Chain), algorithm.MaxRSASize)
	return public, chain, err
}

// maxOlder is the maximum number of older versions that are tried to decrypt data that does not
// say which version it was encrypted with.
const maxOlder = 31

// olderVersions returns the versions before one, the newest first.
func olderVersions(versions map[string]json.RawMessage, before int) []int {
	var older []int
	for text := range versions {
		if n, err := strconv.Atoi(text); err == nil && n < before {
			older = append(older, n)
		}
	}
	slices.Sort(older)
	slices.Reverse(older)
	return older[:min(len(older), maxOlder)]
}

// CreateAES implements keys.Creator. A key that exists stays as it is.
func (t *Transit) CreateAES(ctx context.Context, id string, bits int) error {
	for kind, size := range aesTypes {
		if size*8 != bits {
			continue
		}
		if !transitName(id) {
			return fmt.Errorf("%w: %q is not a name for a key of Transit, expected letters, digits, \"-\", \"_\" and \".\"", keys.ErrUnusable, id)
		}
		b := newBody(0)
		b.text("type", kind)
		defer t.Forget(id)
		return t.call(ctx, pool.Once, http.MethodPost, t.mount+"/keys/"+id, b.end(), nil)
	}
	return fmt.Errorf("%w: Transit has no AES keys of %d bits, expected 128 or 256", keys.ErrUnusable, bits)
}

// Rotate implements keys.Creator.
func (t *Transit) Rotate(ctx context.Context, id string) error {
	if !transitName(id) {
		return keys.ErrNotFound
	}
	defer t.Forget(id)
	err := t.call(ctx, pool.Once, http.MethodPost, t.mount+"/keys/"+id+"/rotate", []byte("{}"), nil)
	if errors.Is(err, errRefused) {
		return fmt.Errorf("%w: %w", keys.ErrNotFound, err)
	}
	return err
}

// transitKey is one version of a key.
type transitKey struct {
	transit *Transit
	id      string
	version int
}

// post makes a request about the key that changes nothing, and clears its body.
func (k *transitKey) post(ctx context.Context, operation, suffix string, b body, reply any) error {
	content := b.end()
	defer clear(content)
	return k.transit.call(ctx, pool.Repeatable, http.MethodPost, k.transit.mount+"/"+operation+"/"+k.id+suffix, content, reply)
}

// decode returns the bytes of a ciphertext or signature. It refuses those of another version of
// the key.
func (k *transitKey) decode(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, "vault:v"+strconv.Itoa(k.version)+":")
	if !ok {
		return nil, fmt.Errorf("%w: the server answered for another version of the key %s than %d", keys.ErrUnusable, k.id, k.version)
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("%w: the server answered for the key %s with something that is not base64", keys.ErrUnusable, k.id)
	}
	return raw, nil
}

// hashNames are the digests that Transit signs, by its names.
var hashNames = map[crypto.Hash]string{
	crypto.SHA1: "sha1", crypto.SHA224: "sha2-224", crypto.SHA256: "sha2-256", crypto.SHA384: "sha2-384", crypto.SHA512: "sha2-512",
	crypto.SHA3_224: "sha3-224", crypto.SHA3_256: "sha3-256", crypto.SHA3_384: "sha3-384", crypto.SHA3_512: "sha3-512",
}

// transitSigner implements keys.RemoteSigner.
type transitSigner struct {
	transitKey
	public crypto.PublicKey
}

// Sign implements keys.RemoteSigner.
func (s *transitSigner) Sign(ctx context.Context, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	b := newBody(len(digest))
	b.base64("input", digest)
	b.number("key_version", s.version)
	suffix := ""
	_, whole := s.public.(ed25519.PublicKey)
	hash, known := hashNames[opts.HashFunc()]
	switch {
	case whole && opts.HashFunc() == 0:
	case whole || !known:
		return nil, fmt.Errorf("%w: Transit does not sign with the key %s and the hash %s", keys.ErrUnusable, s.id, opts.HashFunc())
	default:
		suffix = "/" + hash
		b.flag("prehashed")
	}
	if _, ok := s.public.(*rsa.PublicKey); ok {
		if pss, ok := opts.(*rsa.PSSOptions); ok {
			b.text("signature_algorithm", "pss")
			b.text("salt_length", saltLength(pss.SaltLength))
		} else {
			b.text("signature_algorithm", "pkcs1v15")
		}
	}
	var reply struct {
		Data struct {
			Signature string `json:"signature"`
		} `json:"data"`
	}
	if err := s.post(ctx, "sign", suffix, b, &reply); err != nil {
		return nil, err
	}
	return s.decode(reply.Data.Signature)
}

func saltLength(n int) string {
	switch n {
	case rsa.PSSSaltLengthAuto:
		return "auto"
	case rsa.PSSSaltLengthEqualsHash:
		return "hash"
	}
	return strconv.Itoa(n)
}
