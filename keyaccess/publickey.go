// SPDX-License-Identifier: Apache-2.0

package keyaccess

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	"connectrpc.com/connect"
	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/keyring"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
)

// algorithms returns the algorithms that clients may use.
func (s *Service) algorithms(ring *keyring.Ring) []wrapping.Algorithm {
	return slices.DeleteFunc(ring.Algorithms(), func(a wrapping.Algorithm) bool { return s.FIPS && !a.Type().Approved() })
}

// current returns the current key of an algorithm, or the first that the service has if name is
// empty.
func (s *Service) current(name string) (keyring.Named, error) {
	ring := s.Keys()
	have := s.algorithms(ring)
	algorithm := wrapping.Algorithm(name)
	switch {
	case name == "" && len(have) > 0:
		algorithm = have[0]
	case name != "" && algorithm.Type() == "":
		return keyring.Named{}, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("algorithm: found %.40q, expected one of %q", name, wrapping.Algorithms))
	case !slices.Contains(have, algorithm):
		return keyring.Named{}, connect.NewError(connect.CodeNotFound, fmt.Errorf("algorithm: found %.40q, for which this service has no key, expected one of %q", name, have))
	}
	key, _ := ring.Current(algorithm)
	return key, nil
}

// publicKey answers a request for a public key.
func (s *Service) publicKey(wanted *kas.PublicKeyRequest) (*kas.PublicKeyResponse, error) {
	key, err := s.current(wanted.GetAlgorithm())
	if err != nil {
		return nil, err
	}
	response := &kas.PublicKeyResponse{PublicKey: key.Key.Public(), Kid: key.ID}
	if wanted.GetV() == "1" {
		response.Kid = ""
	}
	switch wanted.GetFmt() {
	case "", "pkcs8":
	case "jwk":
		if response.PublicKey, err = asJWK(key); err != nil {
			return nil, err
		}
	default:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("fmt: found %.40q, expected pkcs8 or jwk", wanted.GetFmt()))
	}
	return response, nil
}

func asJWK(key keyring.Named) (string, error) {
	block, _ := pem.Decode([]byte(key.Key.Public()))
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return "", connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("fmt: found jwk, expected pkcs8 for the algorithm %s", key.Key.Algorithm()))
	}
	text, err := jose.JSONWebKey{Key: public, KeyID: key.ID}.MarshalJSON()
	if err != nil {
		return "", connect.NewError(connect.CodeInternal, err)
	}
	return string(text), nil
}

// legacyPublicKey answers a request for a public key without an id.
func (s *Service) legacyPublicKey(wanted *kas.LegacyPublicKeyRequest) (string, error) {
	name := wanted.GetAlgorithm()
	if name == "" {
		name = string(wrapping.RSA2048)
	}
	key, err := s.current(name)
	if err != nil {
		return "", err
	}
	return key.Key.Public(), nil
}

// configuration returns the configuration of the service for clients.
func (s *Service) configuration() map[string]any {
	ring := s.Keys()
	names := []any{}
	for _, algorithm := range s.algorithms(ring) {
		names = append(names, string(algorithm))
	}
	configuration := map[string]any{
		"platform_issuer":   s.Issuer,
		"platform_endpoint": s.URL,
		"idp":               map[string]any{"issuer": s.Issuer},
		"kas": map[string]any{
			"uri":                    s.URL,
			"algorithms":             names,
			"public_key_url":         s.URL + pathPublicKey,
			"rewrap_url":             s.URL + pathRewrap,
			"connect_public_key_url": s.URL + procedurePublicKey,
			"connect_rewrap_url":     s.URL + procedureRewrap,
		},
	}
	if key, err := s.current(""); err == nil {
		configuration["base_key"] = map[string]any{
			"kas_uri":    s.URL,
			"public_key": map[string]any{"algorithm": string(key.Key.Algorithm()), "kid": key.ID, "pem": key.Key.Public()},
		}
	}
	return configuration
}
