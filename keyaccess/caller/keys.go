// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/jws"
)

// publicKey is a public key of an issuer or a caller.
type publicKey struct {
	id, algorithm string
	public        crypto.PublicKey
	thumbprint    string
}

// errPrivate and errKey are the problems of a JWK.
var (
	errPrivate = errors.New("found a private or secret key")
	errKey     = errors.New("found a key that cannot be used for signatures here")
)

// parseKey reads a JWK (RFC 7517). It ignores certificates in the JWK, because nothing here trusts them.
func parseKey(text []byte) (publicKey, error) {
	var members map[string]*json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return publicKey{}, errKey
	}
	for _, private := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"} {
		if _, found := members[private]; found {
			return publicKey{}, errPrivate
		}
	}
	var about struct {
		ID         string   `json:"kid"`
		Use        string   `json:"use"`
		Operations []string `json:"key_ops"`
		Algorithm  string   `json:"alg"`
	}
	if err := json.Unmarshal(text, &about); err != nil || about.Use != "" && about.Use != "sig" ||
		about.Operations != nil && !slices.Contains(about.Operations, "verify") {
		return publicKey{}, errKey
	}
	// The library would parse certificates and hash them with SHA-1, which GODEBUG=fips140=only does not allow.
	reduced := map[string]*json.RawMessage{}
	for _, name := range []string{"kty", "crv", "x", "y", "n", "e"} {
		if value, found := members[name]; found {
			reduced[name] = value
		}
	}
	text, err := json.Marshal(reduced)
	if err != nil {
		return publicKey{}, errKey
	}
	var key jose.JSONWebKey
	if err := key.UnmarshalJSON(text); err != nil || !key.Valid() || !key.IsPublic() {
		return publicKey{}, errKey
	}
	thumbprint, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return publicKey{}, errKey
	}
	parsed := publicKey{about.ID, about.Algorithm, key.Key, base64.RawURLEncoding.EncodeToString(thumbprint)}
	if !slices.ContainsFunc(Algorithms, parsed.fits) {
		return publicKey{}, errKey
	}
	return parsed, nil
}

// verify checks a signature with the key, which has to fit the algorithm of the header.
func (k publicKey) verify(s *jws.Signed) error {
	if !k.fits(s.Header.Algorithm) {
		return jws.ErrSignature
	}
	return s.Verify(k.public)
}

// fits reports whether signatures of an algorithm may be checked with the key.
func (k publicKey) fits(algorithm string) bool {
	if k.algorithm != "" && k.algorithm != algorithm {
		return false
	}
	switch public := k.public.(type) {
	case *ecdsa.PublicKey:
		switch algorithm {
		case "ES256":
			return public.Curve == elliptic.P256()
		case "ES384":
			return public.Curve == elliptic.P384()
		case "ES512":
			return public.Curve == elliptic.P521()
		}
	case *rsa.PublicKey:
		bits := public.N.BitLen()
		return bits >= 2048 && bits <= 4096 && public.E >= 65537 &&
			slices.Contains([]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}, algorithm)
	case ed25519.PublicKey:
		return algorithm == "EdDSA"
	}
	return false
}
