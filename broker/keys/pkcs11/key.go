// SPDX-License-Identifier: Apache-2.0

//go:build pkcs11

package pkcs11

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"

	"github.com/miekg/pkcs11"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// find asks for a key.
func (p *Provider) find(ctx context.Context, name keys.Name, _ *keys.Key) (*keys.Key, error) {
	return do(ctx, p, func(s *session) (*keys.Key, error) {
		objects, err := s.labeled(name.ID)
		if err != nil {
			return nil, err
		}
		version, err := choose(name, objects)
		if err != nil {
			return nil, err
		}
		key, err := p.key(s, version, objects)
		if err != nil {
			return nil, err
		}
		return key.WithVersion(version.version()), nil
	})
}

// choose returns the version of a key with a name.
func choose(name keys.Name, objects []objectName) (version objectName, err error) {
	found := false
	for i, o := range objects {
		if !o.isKey() {
			continue
		}
		if slices.ContainsFunc(objects[:i], func(other objectName) bool { return other.isKey() && other.id == o.id }) {
			return version, errTwice(o)
		}
		if name.Version != "" && o.version() != name.Version {
			continue
		}
		if !found || newer(o, version) > 0 {
			version, found = o, true
		}
	}
	if !found {
		return version, fmt.Errorf("%w: the token has no key with the label %s and this version", keys.ErrNotFound, name.ID)
	}
	if len(version.id) > maxVersion {
		return version, fmt.Errorf("%w: the key %s has a CKA_ID of %d bytes, expected at most %d", keys.ErrUnusable, name.ID, len(version.id), maxVersion)
	}
	return version, nil
}

// maxVersion is the largest size of a CKA_ID in bytes whose hexadecimal digits can be a version.
const maxVersion = 32

// key returns a key of the token.
func (p *Provider) key(s *session, version objectName, objects []objectName) (*keys.Key, error) {
	kind, err := with(s, version, func(object pkcs11.ObjectHandle) (uint, error) {
		values, err := s.attributes(object, pkcs11.CKA_KEY_TYPE)
		if err != nil {
			return 0, err
		}
		return number(values[0]), nil
	})
	if err != nil {
		return nil, err
	}
	k := key{p, version}
	switch {
	case version.class == pkcs11.CKO_SECRET_KEY && kind == pkcs11.CKK_AES:
		size, padded := 0, uint(0)
		_, err := with(s, version, func(object pkcs11.ObjectHandle) (none struct{}, err error) {
			values, err := s.attributes(object, pkcs11.CKA_VALUE_LEN)
			if err != nil {
				return none, err
			}
			size = int(number(values[0])) //nolint:gosec // checked below
			padded, err = s.kwp(object)
			return none, err
		})
		if err != nil {
			return nil, err
		}
		if size != 16 && size != 24 && size != 32 {
			return nil, fmt.Errorf("%w: the key %s is an AES key of %d bytes, expected 16, 24 or 32", keys.ErrUnusable, version.label, size)
		}
		return keys.NewRemoteSymmetric(version.label, &aesCipher{k, size}).WithWrapper(&aesWrapper{k, padded}), nil
	case version.class == pkcs11.CKO_PRIVATE_KEY && kind == pkcs11.CKK_RSA:
		return p.pair(s, k, objects, rsaKey)
	case version.class == pkcs11.CKO_PRIVATE_KEY && kind == pkcs11.CKK_EC:
		return p.pair(s, k, objects, ecKey)
	case version.class == pkcs11.CKO_PRIVATE_KEY && kind == ecEdwards:
		return p.pair(s, k, objects, ed25519Key)
	}
	return nil, fmt.Errorf("%w: the key %s has the type 0x%x, expected an AES key, or the private key of an RSA, EC or Ed25519 key pair", keys.ErrUnusable, version.label, kind)
}

// key is a version of a key of a token.
type key struct {
	provider *Provider
	name     objectName
}

// pair returns the key of a private key. Its public key, and its certificate if there is one,
// have the same label and CKA_ID.
func (p *Provider) pair(s *session, k key, objects []objectName, parse func(*session, pkcs11.ObjectHandle) (crypto.PublicKey, error)) (*keys.Key, error) {
	beside := func(class uint) (objectName, bool) {
		name := objectName{class, k.name.label, k.name.id}
		return name, slices.Contains(objects, name)
	}
	public, ok := beside(pkcs11.CKO_PUBLIC_KEY)
	if !ok {
		return nil, fmt.Errorf("%w: the private key %s has no public key, expected one with the same label and the CKA_ID %q", keys.ErrUnusable, k.name.label, k.name.version())
	}
	found, err := with(s, public, func(object pkcs11.ObjectHandle) (crypto.PublicKey, error) { return parse(s, object) })
	if err != nil {
		return nil, err
	}
	chain := p.certificates.Of(k.name.label)
	if name, ok := beside(pkcs11.CKO_CERTIFICATE); ok && chain == nil {
		der, err := with(s, name, func(object pkcs11.ObjectHandle) ([]byte, error) {
			values, err := s.attributes(object, pkcs11.CKA_VALUE)
			if err != nil {
				return nil, err
			}
			return values[0], nil
		})
		if err != nil {
			return nil, err
		}
		if chain, err = keys.ParseCertificates(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), algorithm.MaxRSASize); err != nil {
			return nil, fmt.Errorf("%w: the certificate of the key %s %w", keys.ErrUnusable, k.name.label, err)
		}
	}
	result, err := keys.NewRemoteSigning(k.name.label, found, &signer{k, found}, chain)
	if err != nil {
		return nil, fmt.Errorf("%w: the key %s of the token: %w", keys.ErrUnusable, k.name.label, err)
	}
	switch found.(type) {
	case *rsa.PublicKey:
		return result.WithDecrypter(&decrypter{k}), nil
	case *ecdsa.PublicKey:
		return result.WithExchanger(&exchanger{k}), nil
	}
	return result, nil
}

// checked returns a public key, or an error if the broker does not accept such keys.
func checked(public crypto.PublicKey) (crypto.PublicKey, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err == nil {
		public, _, err = keys.ParseVerifier(der, algorithm.MaxRSASize)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the public key of the token %w", keys.ErrUnusable, err)
	}
	return public, nil
}

func rsaKey(s *session, object pkcs11.ObjectHandle) (crypto.PublicKey, error) {
	values, err := s.attributes(object, pkcs11.CKA_MODULUS, pkcs11.CKA_PUBLIC_EXPONENT)
	if err != nil {
		return nil, err
	}
	exponent := new(big.Int).SetBytes(values[1])
	if exponent.BitLen() > 31 {
		return nil, fmt.Errorf("%w: the public exponent of the RSA key has %d bits, expected at most 31", keys.ErrUnusable, exponent.BitLen())
	}
	return checked(&rsa.PublicKey{N: new(big.Int).SetBytes(values[0]), E: int(exponent.Int64())})
}

// curves are the curves by their object identifiers (RFC 5480, section 2.1.1.1).
var curves = map[string]elliptic.Curve{
	"1.3.132.0.33": elliptic.P224(), "1.2.840.10045.3.1.7": elliptic.P256(), "1.3.132.0.34": elliptic.P384(), "1.3.132.0.35": elliptic.P521(),
}

func ecKey(s *session, object pkcs11.ObjectHandle) (crypto.PublicKey, error) {
	values, err := s.attributes(object, pkcs11.CKA_EC_PARAMS, pkcs11.CKA_EC_POINT)
	if err != nil {
		return nil, err
	}
	var name asn1.ObjectIdentifier
	if rest, err := asn1.Unmarshal(values[0], &name); err != nil || len(rest) > 0 || curves[name.String()] == nil {
		return nil, fmt.Errorf("%w: the EC key of the token has another curve, expected P-224, P-256, P-384 or P-521", keys.ErrUnusable)
	}
	curve := curves[name.String()]
	public, err := ecdsa.ParseUncompressedPublicKey(curve, point(values[1], 1+2*((curve.Params().BitSize+7)/8)))
	if err != nil {
		return nil, fmt.Errorf("%w: the EC key of the token has no point of its curve", keys.ErrUnusable)
	}
	return checked(public)
}

// point returns a public key of size bytes. Libraries differ in whether an OCTET STRING is around it.
func point(value []byte, size int) []byte {
	var octets []byte
	if rest, err := asn1.Unmarshal(value, &octets); err == nil && len(rest) == 0 && len(value) != size {
		return octets
	}
	return value
}

// ecEdwards and edDSA are CKK_EC_EDWARDS and CKM_EDDSA of PKCS #11 3.0.
const (
	ecEdwards = 0x40
	edDSA     = 0x1057
)

// ed25519Names are the names of the curve in CKA_EC_PARAMS: the identifier of RFC 8410, section
// 3, and the name of PKCS #11 3.0, section 2.3.5.
var ed25519Names = []string{
	"\x06\x03\x2b\x65\x70",                         // 1.3.101.112
	"\x13\x0cedwards25519",                         // as a PrintableString
	"\x06\x09\x2b\x06\x01\x04\x01\xda\x47\x0f\x01", // 1.3.6.1.4.1.11591.15.1
}

func ed25519Key(s *session, object pkcs11.ObjectHandle) (crypto.PublicKey, error) {
	values, err := s.attributes(object, pkcs11.CKA_EC_PARAMS, pkcs11.CKA_EC_POINT)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(ed25519Names, string(values[0])) {
		return nil, fmt.Errorf("%w: the Edwards key of the token has another curve, expected Ed25519", keys.ErrUnusable)
	}
	public := point(values[1], ed25519.PublicKeySize)
	if len(public) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%w: the public Ed25519 key of the token has %d bytes, expected %d", keys.ErrUnusable, len(public), ed25519.PublicKeySize)
	}
	return checked(ed25519.PublicKey(public))
}

// signer implements keys.RemoteSigner.
type signer struct {
	key
	public crypto.PublicKey
}

// digestInfos are the bytes in front of a digest that RSA signs with PKCS #1 v1.5 (RFC 8017,
// section 9.2, note 1).
var digestInfos = map[crypto.Hash]string{
	crypto.SHA224: "0-0\r\x06\t`\x86H\x01e\x03\x04\x02\x04\x05\x00\x04\x1c",
	crypto.SHA256: "010\r\x06\t`\x86H\x01e\x03\x04\x02\x01\x05\x00\x04 ",
	crypto.SHA384: "0A0\r\x06\t`\x86H\x01e\x03\x04\x02\x02\x05\x00\x040",
	crypto.SHA512: "0Q0\r\x06\t`\x86H\x01e\x03\x04\x02\x03\x05\x00\x04@",
}

// hashes are the mechanisms and mask generation functions of digests.
var hashes = map[crypto.Hash]struct{ digest, mask uint }{
	crypto.SHA224: {pkcs11.CKM_SHA224, pkcs11.CKG_MGF1_SHA224},
	crypto.SHA256: {pkcs11.CKM_SHA256, pkcs11.CKG_MGF1_SHA256},
	crypto.SHA384: {pkcs11.CKM_SHA384, pkcs11.CKG_MGF1_SHA384},
	crypto.SHA512: {pkcs11.CKM_SHA512, pkcs11.CKG_MGF1_SHA512},
}

// Sign implements keys.RemoteSigner.
func (s *signer) Sign(ctx context.Context, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	hash := opts.HashFunc()
	_, known := hashes[hash]
	if _, messages := s.public.(ed25519.PublicKey); messages != (hash == 0) || !messages && (!known || len(digest) != hash.Size()) {
		return nil, fmt.Errorf("%w: keys of PKCS #11 sign digests of SHA-2, and messages with Ed25519, found %s", keys.ErrUnusable, hash)
	}
	mechanism, input := pkcs11.NewMechanism(pkcs11.CKM_ECDSA, nil), digest
	switch public := s.public.(type) {
	case ed25519.PublicKey:
		mechanism = pkcs11.NewMechanism(edDSA, nil)
	case *rsa.PublicKey:
		if pss, ok := opts.(*rsa.PSSOptions); ok {
			salt := pss.SaltLength
			switch salt {
			case rsa.PSSSaltLengthEqualsHash:
				salt = hash.Size()
			case rsa.PSSSaltLengthAuto:
				salt = (public.N.BitLen()-1+7)/8 - 2 - hash.Size()
			}
			mechanism = pkcs11.NewMechanism(pkcs11.CKM_RSA_PKCS_PSS, pkcs11.NewPSSParams(hashes[hash].digest, hashes[hash].mask, uint(max(0, salt)))) //nolint:gosec // not negative
		} else {
			mechanism, input = pkcs11.NewMechanism(pkcs11.CKM_RSA_PKCS, nil), append([]byte(digestInfos[hash]), digest...)
		}
	case *ecdsa.PublicKey:
		if size := (public.Curve.Params().BitSize + 7) / 8; len(input) > size {
			input = input[:size] // the part of a longer digest that ECDSA uses (FIPS 186-5, section 6.4.1)
		}
	}
	signature, err := do(ctx, s.provider, func(open *session) ([]byte, error) {
		return with(open, s.name, func(object pkcs11.ObjectHandle) ([]byte, error) {
			if err := open.module.SignInit(open.handle, []*pkcs11.Mechanism{mechanism}, object); err != nil {
				return nil, err
			}
			return open.module.Sign(open.handle, input)
		})
	})
	if _, ec := s.public.(*ecdsa.PublicKey); !ec || err != nil {
		return signature, err
	}
	half := len(signature) / 2
	return asn1.Marshal([]*big.Int{new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:])})
}
