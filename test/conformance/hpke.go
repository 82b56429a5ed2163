// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	stdhpke "crypto/hpke"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/cloudflare/circl/hpke"
	"github.com/cloudflare/circl/kem"
	"github.com/cloudflare/circl/kem/mlkem/mlkem1024"
	"github.com/cloudflare/circl/kem/mlkem/mlkem768"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
)

// hpkeKeys is the number of keys for each algorithm.
const hpkeKeys = 50

// hpkePeer is another implementation of HPKE for one algorithm.
type hpkePeer struct {
	with algorithm.Wrapping
	// private returns the private key for the broker from the seed of the same key pair.
	private func(seed []byte) (crypto.PrivateKey, error)
	scheme  kem.Scheme
	// seal and open encrypt and decrypt one message with info.
	seal func(public kem.PublicKey, info, plaintext []byte) ([]byte, error)
	open func(private kem.PrivateKey, info, ciphertext []byte) ([]byte, error)
}

func hpkePeers() []hpkePeer {
	ecdhKey := func(curve ecdh.Curve) func([]byte) (crypto.PrivateKey, error) {
		return func(scalar []byte) (crypto.PrivateKey, error) { return curve.NewPrivateKey(scalar) }
	}
	return []hpkePeer{
		ofCIRCL(algorithm.WrapHPKEP256, ecdhKey(ecdh.P256()), hpke.KEM_P256_HKDF_SHA256, hpke.KDF_HKDF_SHA256),
		ofCIRCL(algorithm.WrapHPKEP384, ecdhKey(ecdh.P384()), hpke.KEM_P384_HKDF_SHA384, hpke.KDF_HKDF_SHA384),
		ofCIRCL(algorithm.WrapHPKEP521, ecdhKey(ecdh.P521()), hpke.KEM_P521_HKDF_SHA512, hpke.KDF_HKDF_SHA512),
		ofCIRCL(algorithm.WrapHPKEMLKEMX25519, func(seed []byte) (crypto.PrivateKey, error) {
			return stdhpke.MLKEM768X25519().NewPrivateKey(seed)
		}, hpke.KEM_XWING, hpke.KDF_HKDF_SHA256),
		ofSchedule(algorithm.WrapHPKEMLKEM768, func(seed []byte) (crypto.PrivateKey, error) {
			return mlkem.NewDecapsulationKey768(seed)
		}, mlkem768.Scheme(), schedule{kem: 0x0041, kdf: 0x0001, hash: sha256.New}),
		ofSchedule(algorithm.WrapHPKEMLKEM1024, func(seed []byte) (crypto.PrivateKey, error) {
			return mlkem.NewDecapsulationKey1024(seed)
		}, mlkem1024.Scheme(), schedule{kem: 0x0042, kdf: 0x0002, hash: sha512.New384}),
	}
}

// ofCIRCL returns the peer that has HPKE of CIRCL.
func ofCIRCL(with algorithm.Wrapping, private func([]byte) (crypto.PrivateKey, error), kemID hpke.KEM, kdf hpke.KDF) hpkePeer {
	suite := hpke.NewSuite(kemID, kdf, hpke.AEAD_AES256GCM)
	return hpkePeer{
		with: with, private: private, scheme: kemID.Scheme(),
		seal: func(public kem.PublicKey, info, plaintext []byte) ([]byte, error) {
			sender, err := suite.NewSender(public, info)
			if err != nil {
				return nil, err
			}
			enc, sealer, err := sender.Setup(rand.Reader)
			if err != nil {
				return nil, err
			}
			ciphertext, err := sealer.Seal(plaintext, nil)
			return append(enc, ciphertext...), err
		},
		open: func(private kem.PrivateKey, info, ciphertext []byte) ([]byte, error) {
			size := kemID.Scheme().CiphertextSize()
			receiver, err := suite.NewReceiver(private, info)
			if err != nil {
				return nil, err
			}
			opener, err := receiver.Setup(ciphertext[:size])
			if err != nil {
				return nil, err
			}
			return opener.Open(ciphertext[size:], nil)
		},
	}
}

// ofSchedule returns the peer that has ML-KEM of CIRCL, and the key schedule below.
func ofSchedule(with algorithm.Wrapping, private func([]byte) (crypto.PrivateKey, error), scheme kem.Scheme, s schedule) hpkePeer {
	return hpkePeer{
		with: with, private: private, scheme: scheme,
		seal: func(public kem.PublicKey, info, plaintext []byte) ([]byte, error) {
			enc, shared, err := scheme.Encapsulate(public)
			if err != nil {
				return nil, err
			}
			aead, nonce, err := s.aead(shared, info)
			if err != nil {
				return nil, err
			}
			return aead.Seal(enc, nonce, plaintext, nil), nil
		},
		open: func(private kem.PrivateKey, info, ciphertext []byte) ([]byte, error) {
			size := scheme.CiphertextSize()
			shared, err := scheme.Decapsulate(private, ciphertext[:size])
			if err != nil {
				return nil, err
			}
			aead, nonce, err := s.aead(shared, info)
			if err != nil {
				return nil, err
			}
			return aead.Open(nil, nonce, ciphertext[size:], nil)
		},
	}
}

// schedule is the key schedule of RFC 9180, section 5.1, in base mode with AES-256-GCM.
type schedule struct {
	kem, kdf uint16
	hash     func() hash.Hash
}

// aes256GCM is the identifier of AES-256-GCM (RFC 9180, section 7.3).
const aes256GCM = 0x0002

func (s schedule) aead(shared, info []byte) (cipher.AEAD, []byte, error) {
	suite := []byte("HPKE")
	for _, id := range []uint16{s.kem, s.kdf, aes256GCM} {
		suite = binary.BigEndian.AppendUint16(suite, id)
	}
	extract := func(salt []byte, label string, material []byte) ([]byte, error) {
		return hkdf.Extract(s.hash, bytes.Join([][]byte{[]byte("HPKE-v1"), suite, []byte(label), material}, nil), salt)
	}
	idHash, err := extract(nil, "psk_id_hash", nil)
	if err != nil {
		return nil, nil, err
	}
	infoHash, err := extract(nil, "info_hash", info)
	if err != nil {
		return nil, nil, err
	}
	context := bytes.Join([][]byte{{0}, idHash, infoHash}, nil)
	secret, err := extract(shared, "secret", nil)
	if err != nil {
		return nil, nil, err
	}
	expand := func(label string, size int) ([]byte, error) {
		labeled := bytes.Join([][]byte{binary.BigEndian.AppendUint16(nil, uint16(size)), []byte("HPKE-v1"), suite, []byte(label), context}, nil)
		return hkdf.Expand(s.hash, secret, string(labeled), size)
	}
	key, err := expand("key", 32)
	if err != nil {
		return nil, nil, err
	}
	nonce, err := expand("base_nonce", 12)
	if err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, nil, err
	}
	aead, err := cipher.NewGCM(block)
	return aead, nonce, err
}

func (p *plan) addHPKE() error {
	for _, peer := range hpkePeers() {
		for i := range hpkeKeys {
			name := fmt.Sprintf("%s, key %d", peer.with, i)
			p.addSome(5, row{wrapping, peer.with.String(), fromCIRCL}, name, inProcess(func() verdict { return peer.brokerWraps(i) }))
			p.addSome(5, row{unwrapping, peer.with.String(), fromCIRCL}, name, inProcess(func() verdict { return peer.brokerUnwraps(i) }))
		}
	}
	return nil
}

// pair returns a key pair for the broker and for the other implementation.
func (h hpkePeer) pair() (*wrap.Private, kem.PublicKey, kem.PrivateKey, error) {
	seed := make([]byte, h.scheme.SeedSize())
	_, _ = rand.Read(seed) // never returns an error
	public, private := h.scheme.DeriveKeyPair(seed)
	secret := seed
	if h.with.Key() != algorithm.MLKEM768WrappingKey && h.with.Key() != algorithm.MLKEM1024WrappingKey {
		var err error
		if secret, err = private.MarshalBinary(); err != nil {
			return nil, nil, nil, err
		}
	}
	parsed, err := h.private(secret)
	if err != nil {
		return nil, nil, nil, err
	}
	broker, err := wrap.NewPrivate(parsed)
	return broker, public, private, err
}

// keyAndInfo returns a data key and a header. Their sizes depend on a number.
func keyAndInfo(number int) (key, info []byte) {
	key, info = make([]byte, 16+number), make([]byte, 7*number)
	_, _ = rand.Read(key)
	_, _ = rand.Read(info)
	return key, info
}

// brokerWraps lets the other implementation unwrap what the broker wrapped.
func (h hpkePeer) brokerWraps(number int) verdict {
	broker, _, private, err := h.pair()
	if err != nil {
		return failed("%v", err)
	}
	key, info := keyAndInfo(number)
	wrapped, err := broker.Wrap(h.with, key, info)
	if err != nil {
		return failed("wrap: %v", err)
	}
	found, err := h.open(private, info, wrapped)
	if err != nil {
		return failed("CIRCL does not unwrap what the broker wrapped: %v", err)
	}
	return judgeEqual("the key", found, key)
}

// brokerUnwraps lets the broker unwrap what the other implementation wrapped, and the same
// with other info.
func (h hpkePeer) brokerUnwraps(number int) verdict {
	broker, public, _, err := h.pair()
	if err != nil {
		return failed("%v", err)
	}
	key, info := keyAndInfo(number)
	wrapped, err := h.seal(public, info, key)
	if err != nil {
		return failed("CIRCL: %v", err)
	}
	found, err := broker.Unwrap(h.with, wrapped, info)
	if err != nil {
		return failed("unwrap: %v", err)
	}
	if _, err := broker.Unwrap(h.with, wrapped, append(info, 0)); err == nil {
		return failed("unwraps with other info")
	}
	return judgeEqual("the key", found, key)
}
