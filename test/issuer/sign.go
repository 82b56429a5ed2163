// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// NewKey makes a key for an algorithm.
func NewKey(algorithm jose.SignatureAlgorithm) (crypto.Signer, error) {
	switch algorithm {
	case jose.ES256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.ES384:
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case jose.ES512:
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512:
		return rsa.GenerateKey(rand.Reader, 2048)
	case jose.EdDSA:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	}
	return nil, fmt.Errorf("found the algorithm %q, expected one for signatures by a private key", algorithm)
}

// Thumbprint returns the thumbprint of a public key (RFC 7638). It panics for keys that are not
// from [NewKey].
func Thumbprint(public crypto.PublicKey) string {
	sum, err := (&jose.JSONWebKey{Key: public}).Thumbprint(crypto.SHA256)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(sum)
}

// Sign returns a JWS of claims in the compact form. The header gets the algorithm of the key, unless it has one. It panics for keys
// that cannot sign.
func Sign(key jose.JSONWebKey, header, claims map[string]any) string {
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return SignBytes(key, header, payload)
}

// SignBytes is [Sign] for a payload that need not be JSON.
func SignBytes(key jose.JSONWebKey, header map[string]any, payload []byte) string {
	options := &jose.SignerOptions{}
	for name, value := range header {
		options.WithHeader(jose.HeaderKey(name), value)
	}
	// The library would add the key's id by itself.
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key.Key}, options)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return text
}

// Prover makes DPoP proofs with a key.
type Prover struct {
	Key       crypto.Signer
	Algorithm jose.SignatureAlgorithm
	// Now returns the time, [time.Now] if it is nil.
	Now func() time.Time
}

// Claims returns the claims of a good proof for a request with a token.
func (p Prover) Claims(method, url, token string) map[string]any {
	now := p.Now
	if now == nil {
		now = time.Now
	}
	hash := sha256.Sum256([]byte(token))
	return map[string]any{
		"jti": rand.Text(), "htm": method, "htu": url, "iat": now().Unix(), "ath": base64.RawURLEncoding.EncodeToString(hash[:]),
	}
}

// Header returns the header of a good proof, without the algorithm.
func (p Prover) Header() map[string]any {
	return map[string]any{"typ": "dpop+jwt", "jwk": jose.JSONWebKey{Key: p.Key.Public()}}
}

// Proof returns a proof for a request with a token.
func (p Prover) Proof(method, url, token string) string {
	return Sign(p.SigningKey(), p.Header(), p.Claims(method, url, token))
}

// SigningKey returns the key for [Sign].
func (p Prover) SigningKey() jose.JSONWebKey {
	return jose.JSONWebKey{Key: p.Key, Algorithm: string(p.Algorithm)}
}

// boundBy returns the thumbprint of the key of a proof for the token endpoint.
func (i *Issuer) boundBy(proofs []string, url string) (string, error) {
	if len(proofs) != 1 {
		return "", errors.New("expected one proof")
	}
	signed, err := jose.ParseSignedCompact(proofs[0], []jose.SignatureAlgorithm{jose.ES256, jose.ES384, jose.ES512, jose.RS256, jose.PS256, jose.EdDSA})
	if err != nil {
		return "", err
	}
	header := signed.Signatures[0].Protected
	if header.JSONWebKey == nil || header.ExtraHeaders["typ"] != "dpop+jwt" {
		return "", errors.New("expected a key and the type dpop+jwt")
	}
	payload, err := signed.Verify(header.JSONWebKey.Key)
	if err != nil {
		return "", err
	}
	var claims struct {
		Method   string `json:"htm"`
		URL      string `json:"htu"`
		IssuedAt int64  `json:"iat"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", err
	}
	age := i.options.Now().Sub(time.Unix(claims.IssuedAt, 0)).Abs()
	if claims.Method != http.MethodPost || claims.URL != url || age > time.Minute {
		return "", errors.New("expected a proof for this request")
	}
	return Thumbprint(header.JSONWebKey.Key), nil
}
