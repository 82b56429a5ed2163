// SPDX-License-Identifier: Apache-2.0

package wrapping

import (
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/rsa"
	"errors"
	"fmt"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// Managed is a [Key] whose private key stays in a key manager.
//
// An error of its Unwrap wraps [keys.ErrUnavailable] if the key manager has not looked at the wrapped data key. Such an
// error depends on no secret.
type Managed interface {
	Key
	// Identity returns what names the key: its provider, its id there, its version and its public key. Another key has
	// another identity.
	Identity() []byte
}

// A Finder finds keys of key managers. [keys.Stack] implements it. It asks a key manager at most once a minute for each key.
type Finder interface {
	Key(ctx context.Context, name keys.Name) (*keys.Key, error)
}

// Manage returns a key of a key manager: RSA of 2048, 3072 or 4096 bits that decrypts there, or EC on P-256, P-384 or P-521 that
// agrees on secrets there. If the key manager gives the private key out, as the key-value engine of OpenBao does, the key is in
// memory, and no [Managed]. An error wraps the errors of package keys, or says why the key cannot be used.
func Manage(ctx context.Context, finder Finder, name keys.Name) (Key, error) {
	found, err := finder.Key(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case name.Version == "" && found.Version() != "":
		// Files of the key would be lost if another version became the newest one.
		return nil, fmt.Errorf("%w: %s has versions, expected a version in the same file; the newest one is %s", keys.ErrUnusable, name.ID, found.Version())
	}
	if signer := found.Signer(ctx); signer != nil && !found.Remote() {
		key, err := localKey(signer)
		if err != nil {
			return nil, fmt.Errorf("%w: %s %w", keys.ErrUnusable, name.ID, err)
		}
		return key, nil
	}
	k := &managedKey{finder: finder, name: name}
	switch public := found.Public().(type) {
	case *rsa.PublicKey:
		k.algorithm, err = rsaAlgorithm(public)
		if err == nil && found.Decrypter() == nil {
			err = errors.New("is an RSA key that does not decrypt in its key manager with RSA-OAEP and SHA-1")
		}
		k.size = public.Size()
	case *ecdsa.PublicKey:
		var exchange *ecdh.PublicKey
		if exchange, err = public.ECDH(); err != nil || curveAlgorithm(exchange.Curve()) == "" {
			err = errCurve
			break
		}
		k.algorithm, k.curve = curveAlgorithm(exchange.Curve()), exchange.Curve()
		if found.Exchanger() == nil {
			err = errors.New("is an EC key that does not agree on secrets in its key manager (ECDH)")
		}
	default:
		err = errors.New("is no RSA or EC key pair")
	}
	if err == nil {
		k.public, err = publicPEM(found.Public())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s %w", keys.ErrUnusable, name.ID, err)
	}
	k.spki, _ = found.SPKISHA256() // there is a public key
	return k, nil
}

// managedKey implements Managed.
type managedKey struct {
	pair
	finder Finder
	name   keys.Name
	spki   [32]byte
	size   int        // of an RSA modulus in bytes
	curve  ecdh.Curve // of an EC key
}

// Identity implements Managed.
func (k *managedKey) Identity() []byte {
	return fmt.Appendf(nil, "%q %q %x", k.name.ID, k.name.Version, k.spki)
}

// Unwrap implements Key.
func (k *managedKey) Unwrap(ctx context.Context, wrapped Wrapped) ([]byte, error) {
	if wrapped.Type != k.algorithm.Type() {
		return nil, errType
	}
	if wrapped.Type == RSA {
		if len(wrapped.Key) != k.size {
			return nil, keys.ErrInvalidCiphertext // key managers answer such data in many ways
		}
		key, err := k.find(ctx)
		if err != nil {
			return nil, err
		}
		return key.Decrypter().DecryptOAEP(ctx, crypto.SHA1, wrapped.Key)
	}
	ephemeral, err := wrapped.ephemeral()
	if err != nil {
		return nil, err
	}
	if ephemeral.Curve() != k.curve {
		return nil, keys.ErrInvalidCiphertext
	}
	key, err := k.find(ctx)
	if err != nil {
		return nil, err
	}
	secret, err := key.Exchanger().ECDH(ctx, ephemeral)
	if err != nil {
		return nil, err
	}
	return openShared(secret, wrapped.Key)
}

// find returns the key as its key manager has it now.
func (k *managedKey) find(ctx context.Context) (*keys.Key, error) {
	found, err := k.finder.Key(ctx, k.name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", keys.ErrUnavailable, err)
	}
	spki, _ := found.SPKISHA256() // zeros for a key without a public key
	if spki != k.spki || found.Decrypter() == nil && k.algorithm.Type() == RSA || found.Exchanger() == nil && k.algorithm.Type() == EC {
		return nil, fmt.Errorf("%w: its key manager now has another key with the name %s; expected one id for one key, because files that were made with the old key need it", keys.ErrUnavailable, k.name.ID)
	}
	return found, nil
}

// Pending returns a key that its key manager has not given yet, because of an error. It has no algorithm, and unwraps nothing.
func Pending(because error) Key { return pending{because: because} }

type pending struct {
	pair    // nothing is known of the key
	because error
}

// Unwrap implements Key.
func (p pending) Unwrap(context.Context, Wrapped) ([]byte, error) {
	return nil, fmt.Errorf("%w: %w", keys.ErrUnavailable, p.because)
}

// WhyPending returns why a key is not there yet, or nil if it is.
func WhyPending(key Key) error {
	if p, ok := key.(pending); ok {
		return p.because
	}
	return nil
}
