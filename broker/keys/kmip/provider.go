// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/keycache"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
)

// Provider is the provider of type kmip.
//
// The id of a key is its attribute Name. Several objects may have the same Name: they are the
// versions of the key, and the name of a version is its Unique Identifier. New data is protected
// with the active version that has been active for the shortest time. If no object has the id as
// its Name, the id may be the Unique Identifier of a key with one version.
//
// AES keys are read from the key manager. Private keys stay there and sign there, which servers
// can do since KMIP 1.2. Their public keys and certificates are the objects that they link to, or
// objects with the same Name.
type Provider struct {
	*Manager
	*keycache.Keys
}

var (
	_ providers.Provider = (*Provider)(nil)
	_ keys.Creator       = (*Provider)(nil)
)

// Open is the constructor for [providers.Types].
func Open(config *providers.Config, credentials providers.Credentials) (providers.Provider, error) {
	client, err := credentials.TLS(config.ServerName, len(config.Endpoints))
	if err != nil {
		return nil, err
	}
	c := config.Connections
	manager, err := New(Config{Servers: config.Endpoints, TLS: client, Pool: pool.Config[*Session]{
		Min: c.Min, Max: c.Max, Lifetime: c.Lifetime, IdleTime: c.IdleTime, RoundRobin: c.RoundRobin,
		DialTimeout: c.ConnectTimeout, RequestTimeout: c.RequestTimeout,
	}})
	if errors.Is(err, errNoCertificate) {
		err = providers.BadCredentials(err)
	}
	if err != nil {
		return nil, err
	}
	p := &Provider{Manager: manager}
	p.Keys = keycache.New(config.CacheFor(), p.find)
	return p, nil
}

// Check implements providers.Provider. The version is the newest protocol version.
func (p *Provider) Check(ctx context.Context) (version string, err error) {
	err = p.Do(ctx, pool.Repeatable, func(ctx context.Context, s *Session) error {
		versions, err := s.Versions(ctx)
		if err == nil && len(versions) > 0 {
			version = "KMIP " + versions[0]
		}
		return err
	})
	return version, err
}

// Close implements providers.Provider.
func (p *Provider) Close() {
	p.Keys.Close()
	p.Manager.Close()
}

// CreateAES implements keys.Creator. The key can be used at once.
func (p *Provider) CreateAES(ctx context.Context, id string, bits int) error {
	err := p.Do(ctx, pool.Once, func(ctx context.Context, s *Session) error {
		_, err := s.createNamedAES(ctx, id, bits)
		return err
	})
	p.Forget(id)
	return err
}

// Rotate implements keys.Creator. It makes another AES key with the same Name and size, because
// not all key managers have the operation Re-key.
func (p *Provider) Rotate(ctx context.Context, id string) error {
	var bits int
	err := p.Do(ctx, pool.Repeatable, func(ctx context.Context, s *Session) error {
		found, err := s.versionsOf(ctx, id, "")
		if err != nil {
			return err
		}
		defer clear(found.material)
		current, err := newest(id, found.objects)
		if err != nil {
			return err
		}
		if !current.isAES() {
			return fmt.Errorf("%w: %s is not an AES key, expected one; key pairs are rotated in the key manager", keys.ErrUnusable, id)
		}
		if current.name != id {
			return fmt.Errorf("%w: %s has no attribute Name, which the next version needs as well", keys.ErrUnusable, id)
		}
		bits = current.bits
		return nil
	})
	if err != nil {
		return err
	}
	return p.CreateAES(ctx, id, bits)
}

// find asks for a key. All its requests go to one server, so that they see the same objects.
func (p *Provider) find(ctx context.Context, name keys.Name, before *keys.Key) (key *keys.Key, err error) {
	err = p.Do(ctx, pool.Repeatable, func(ctx context.Context, s *Session) error {
		key, err = p.findIn(ctx, s, name, before)
		return err
	})
	if err != nil {
		return nil, err
	}
	return key, nil
}

func (p *Provider) findIn(ctx context.Context, s *Session, name keys.Name, before *keys.Key) (*keys.Key, error) {
	found, err := s.objectsFor(ctx, name, before)
	if err != nil {
		return nil, err
	}
	defer clear(found.material)
	var version *object
	if name.Version == "" {
		version, err = newest(name.ID, found.objects)
	} else {
		version, err = named(name, found.objects)
	}
	if err != nil {
		return nil, err
	}
	if before != nil && before.Version() == version.id {
		return before, nil // objects never change their keys
	}
	switch {
	case version.isAES():
		material := found.material
		if material == nil {
			if material, err = s.Get(ctx, version.id); err != nil {
				return nil, err
			}
			defer clear(material)
		}
		key, err := keys.NewAES(name.ID, material)
		if err != nil {
			return nil, fmt.Errorf("%w: %s %w", keys.ErrUnusable, name.ID, err)
		}
		return key.WithVersion(version.id), nil
	case version.isPrivateKey(), version.isPublicKey():
		return p.pair(ctx, s, name.ID, version, found.objects)
	}
	return nil, fmt.Errorf("%w: %s is %s, expected an AES key, or an RSA or EC key pair", keys.ErrUnusable, name.ID, version.describe())
}

// objectsFor returns the objects that may belong to a key. An AES key whose version is named
// needs no other object.
func (s *Session) objectsFor(ctx context.Context, name keys.Name, before *keys.Key) (*located, error) {
	if name.Version != "" {
		version, err := s.versionNamed(ctx, name, before)
		if version != nil || err != nil {
			return version, err
		}
	}
	known := ""
	if before != nil {
		known = before.Version()
	}
	return s.versionsOf(ctx, name.ID, known)
}

// newest returns the version that new data is protected with.
func newest(id string, found []*object) (*object, error) {
	var best *object
	states := map[string]bool{}
	for _, o := range found {
		if o.isCertificate() {
			continue
		}
		states[o.stateText()] = true
		switch {
		case !o.isActive():
		case best == nil, o.isPrivateKey() && best.isPublicKey():
			best = o
		case o.isPublicKey() && best.isPrivateKey():
		case o.since().After(best.since()), o.since().Equal(best.since()) && o.position > best.position:
			best = o
		}
	}
	if best != nil {
		return best, nil
	}
	if len(states) == 0 {
		return nil, fmt.Errorf("%w: %s", keys.ErrNotFound, id)
	}
	return nil, fmt.Errorf("%w: %s has no version in the state Active, found the states %s", keys.ErrUnusable, id, strings.Join(slices.Sorted(maps.Keys(states)), ", "))
}

// named returns a version by its name. The version has to belong to the key, because its name
// comes with data that a caller sends, and only the id says what the caller may use.
func named(name keys.Name, found []*object) (*object, error) {
	for _, o := range found {
		if o.id != name.Version || o.isCertificate() {
			continue
		}
		if !o.mayUnprotect() {
			return nil, fmt.Errorf("%w: version %s of %s is in the state %s", keys.ErrUnusable, o.id, name.ID, o.stateText())
		}
		return o, nil
	}
	return nil, fmt.Errorf("%w: %s has no version %s", keys.ErrNotFound, name.ID, name.Version)
}

// pair returns the key of a private key that stays in the key manager, or of a public key.
func (p *Provider) pair(ctx context.Context, s *Session, id string, version *object, found []*object) (*keys.Key, error) {
	public, err := s.publicKey(ctx, id, version, found)
	if err != nil {
		return nil, err
	}
	chain, err := s.certificates(ctx, version, found, public)
	if err != nil {
		return nil, err
	}
	var key *keys.Key
	if version.isPrivateKey() {
		key, err = keys.NewRemoteSigning(id, public, &signer{p.Manager, version.id, public}, chain)
	} else {
		key, err = keys.NewVerifying(id, public, chain)
	}
	if err != nil {
		return nil, errors.Join(keys.ErrUnusable, fmt.Errorf("%s: %w", id, err))
	}
	return key.WithVersion(version.id), nil
}
