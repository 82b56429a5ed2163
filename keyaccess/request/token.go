// SPDX-License-Identifier: Apache-2.0

package request

import (
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/jws"
)

// Skew is how far the clocks of clients may differ from ours.
const Skew = time.Minute

// Open returns the claim requestBody of a signed request. key is the key that the caller has
// proven to have, or nil for a caller whose token is bound to no key. The times in the request
// must permit it now. The text of an error has no part of the request.
func Open(token string, key crypto.PublicKey, now time.Time) ([]byte, error) {
	signed, err := jws.Open(token)
	if err != nil {
		return nil, fmt.Errorf("the request %w", err)
	}
	if !slices.Contains(jws.Algorithms, signed.Header.Algorithm) {
		return nil, fmt.Errorf("the request has another algorithm, expected one of %s", strings.Join(jws.Algorithms, ", "))
	}
	if key != nil && signed.Verify(key) != nil {
		return nil, errors.New("the signature is not of the key that the DPoP proof is signed with")
	}
	var claims struct {
		Body      *string  `json:"requestBody"`
		IssuedAt  *float64 `json:"iat"`
		NotBefore *float64 `json:"nbf"`
		Expires   *float64 `json:"exp"`
	}
	if err := json.Unmarshal(signed.Payload, &claims); err != nil || claims.Body == nil {
		return nil, errors.New("found no claim requestBody with a text")
	}
	seconds := float64(now.Unix())
	skew := Skew.Seconds()
	for _, early := range []*float64{claims.IssuedAt, claims.NotBefore} {
		if early != nil && *early > seconds+skew {
			return nil, fmt.Errorf("iat or nbf is more than %s in the future", Skew)
		}
	}
	if claims.Expires != nil && *claims.Expires < seconds-skew {
		return nil, errors.New("the request has expired")
	}
	return []byte(*claims.Body), nil
}
