// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// The types of statements, in the header typ (RFC 8725, section 3.11).
const (
	typeForward = "key-access-forward+jwt"
	typeResult  = "key-access-result+jwt"
)

// lifetime is how long a statement is valid, and skew how far the clocks of services may differ.
const lifetime, skew = time.Minute, 30 * time.Second

// header has the fields of all statements.
type header struct {
	// Issuer and Audience are the URLs of the services that sign and that read.
	Issuer   string `json:"iss"`
	Audience string `json:"aud"`
	// ID is random. A result has the id of its request.
	ID       string `json:"jti"`
	IssuedAt int64  `json:"iat"`
}

// fits reports whether a statement is for a service, and of this time.
func (h *header) fits(audience string, now time.Time) bool {
	age := now.Sub(time.Unix(h.IssuedAt, 0))
	return h.Audience == audience && h.ID != "" && age > -skew && age < lifetime+skew
}

// forward is a request that a service forwards.
type forward struct {
	header
	// Via are the services that have forwarded the request: first the service that the client has asked, last the issuer.
	Via []string `json:"via"`
	// Authorization, Proof and Path are from the client's request to the first service.
	Authorization string `json:"authorization"`
	Proof         string `json:"proof"`
	Path          string `json:"path"`
	// Digest is the SHA-256 of the client's signed request, which is the body.
	Digest []byte `json:"request_sha256"`
	// Objects are the places of the data keys that are asked for, among all data keys of the request from 0.
	Objects []int `json:"objects"`
}

// results are the reply to a forward.
type results struct {
	header
	// SessionKey is the ephemeral public key in PEM that an EC client needs.
	SessionKey string   `json:"session_key,omitempty"`
	Results    []Result `json:"results"`
}

// Result is the result of a peer for one data key.
type Result struct {
	// Object is the place of the data key among all data keys of the request, from 0.
	Object int `json:"object"`
	// Wrapped is the data key, wrapped to the client's key. It is empty if the data key is not released.
	Wrapped []byte `json:"wrapped,omitempty"`
	// Error is the text of a failure for the client.
	Error string `json:"error,omitempty"`
}

// newSigner returns a signer of statements of a kind.
func newSigner(key crypto.Signer, kind string) (jose.Signer, error) {
	id, err := keyID(key)
	if err != nil {
		return nil, err
	}
	options := (&jose.SignerOptions{}).WithType(jose.ContentType(kind))
	return jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm(key)), Key: jose.JSONWebKey{Key: key, KeyID: id}}, options)
}

// sign returns the statement with the claims.
func sign(by jose.Signer, claims any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := by.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// keyID returns the id of a key: its thumbprint (RFC 7638).
func keyID(key crypto.Signer) (string, error) {
	sum, err := (&jose.JSONWebKey{Key: key.Public()}).Thumbprint(crypto.SHA256)
	return base64.RawURLEncoding.EncodeToString(sum), err
}

// keySet returns the public keys as a JSON Web Key Set (RFC 7517, section 5).
func keySet(keys []crypto.Signer) ([]byte, error) {
	var set jose.JSONWebKeySet
	for _, key := range keys {
		id, err := keyID(key)
		if err != nil {
			return nil, err
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: id, Algorithm: algorithm(key), Use: "sig"})
	}
	return json.Marshal(set)
}
