// SPDX-License-Identifier: Apache-2.0

package wrapping

import (
	"crypto/ecdh"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/sha3"
	"errors"
	"fmt"
)

// Sizes of X-Wing in bytes.
const (
	xwingSeedSize   = 32
	sizeX25519      = 32
	xwingPublicSize = mlkem.EncapsulationKeySize768 + sizeX25519
	xwingCipherSize = mlkem.CiphertextSize768 + sizeX25519
)

// xwingLabel is the end of the input of the hash: draft-connolly-cfrg-xwing-kem, section 5.3.
const xwingLabel = `\.//^\`

// xwingPrivate is a private key of X-Wing (draft-connolly-cfrg-xwing-kem, section 5): ML-KEM-768 and X25519, whose secrets are hashed
// together. crypto/hpke has X-Wing too, but gives nobody the shared secret, which OpenTDF's clients use without HPKE.
type xwingPrivate struct {
	pq      *mlkem.DecapsulationKey768
	classic *ecdh.PrivateKey
}

// newXWingKey returns the key of a seed. An error is the end of a sentence that begins with the name of the key.
func newXWingKey(seed []byte) (Key, error) {
	if len(seed) != xwingSeedSize {
		return nil, fmt.Errorf("is an X-Wing key of %d bytes, expected its seed of %d", len(seed), xwingSeedSize)
	}
	expanded := sha3.SumSHAKE256(seed, mlkem.SeedSize+sizeX25519)
	defer clear(expanded)
	pq, err := mlkem.NewDecapsulationKey768(expanded[:mlkem.SeedSize])
	if err != nil {
		return nil, errors.New("is a damaged X-Wing key")
	}
	classic, err := ecdh.X25519().NewPrivateKey(expanded[mlkem.SeedSize:])
	if err != nil {
		return nil, errors.New("is an X-Wing key, which has a part on X25519 that GODEBUG=fips140=only does not permit")
	}
	public, err := kemPublicPEM(oidXWing, append(pq.EncapsulationKey().Bytes(), classic.PublicKey().Bytes()...))
	if err != nil {
		return nil, err
	}
	return &kemKey{pair{XWing, public}, &xwingPrivate{pq, classic}}, nil
}

// Decapsulate returns the shared secret of a ciphertext.
func (k *xwingPrivate) Decapsulate(ciphertext []byte) ([]byte, error) {
	if len(ciphertext) != xwingCipherSize {
		return nil, fmt.Errorf("found a ciphertext of X-Wing with %d bytes, expected %d", len(ciphertext), xwingCipherSize)
	}
	ephemeral, err := ecdh.X25519().NewPublicKey(ciphertext[mlkem.CiphertextSize768:])
	if err != nil {
		return nil, err
	}
	classic, err := k.classic.ECDH(ephemeral)
	if err != nil {
		return nil, err
	}
	pq, err := k.pq.Decapsulate(ciphertext[:mlkem.CiphertextSize768])
	if err != nil {
		return nil, err
	}
	return combine(pq, classic, ephemeral, k.classic.PublicKey()), nil
}

// combine returns the shared secret of X-Wing. It overwrites the secrets of ML-KEM and X25519.
func combine(pq, classic []byte, ephemeral, recipient *ecdh.PublicKey) []byte {
	defer clear(pq)
	defer clear(classic)
	hash := sha3.New256()
	for _, part := range [][]byte{pq, classic, ephemeral.Bytes(), recipient.Bytes(), []byte(xwingLabel)} {
		_, _ = hash.Write(part) // a hash never fails
	}
	return hash.Sum(nil)
}

// xwingPublic is a public key of X-Wing.
type xwingPublic struct {
	pq      *mlkem.EncapsulationKey768
	classic *ecdh.PublicKey
}

func newXWingPublic(text []byte) (*xwingPublic, error) {
	if len(text) != xwingPublicSize {
		return nil, fmt.Errorf("found %d bytes, expected %d", len(text), xwingPublicSize)
	}
	pq, err := mlkem.NewEncapsulationKey768(text[:mlkem.EncapsulationKeySize768])
	if err != nil {
		return nil, err
	}
	classic, err := ecdh.X25519().NewPublicKey(text[mlkem.EncapsulationKeySize768:])
	if err != nil {
		return nil, err
	}
	key := &xwingPublic{pq, classic}
	_, _, err = key.encapsulate() // nothing else detects a point of low order before there is a data key
	return key, err
}

// encapsulate returns a new shared secret and its ciphertext.
func (k *xwingPublic) encapsulate() (shared, ciphertext []byte, err error) {
	ephemeral, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	classic, err := ephemeral.ECDH(k.classic)
	if err != nil {
		return nil, nil, err
	}
	pq, ciphertext := k.pq.Encapsulate()
	return combine(pq, classic, ephemeral.PublicKey(), k.classic), append(ciphertext, ephemeral.PublicKey().Bytes()...), nil
}
