// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"fmt"
	"strings"
	"unicode"

	"github.com/crypto-broker/crypto-broker-operator/broker/pemtext"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
)

// maxTrustedKeysSize is the largest file of public keys, in bytes.
const maxTrustedKeysSize = 16 << 10

// readTrustedKeys returns the public keys in a file, with commas, spaces or line breaks between
// them. Its errors quote no key, because it could be a private key by mistake.
func readTrustedKeys(file string) ([]ed25519.PublicKey, error) {
	text, _, err := regularfile.Read(file, maxTrustedKeysSize)
	if err != nil {
		return nil, err
	}
	if len(text) > maxTrustedKeysSize {
		return nil, fmt.Errorf("%s has more than %d bytes", file, maxTrustedKeysSize)
	}
	var keys []ed25519.PublicKey
	for i, word := range strings.FieldsFunc(string(text), func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		key, err := signed.ParseKey(word)
		if err != nil {
			return nil, fmt.Errorf("the key number %d of %s: %w", i+1, file, err)
		}
		keys = append(keys, key)
	}
	if err := (signed.Trust{Keys: keys, Audience: "any"}).Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return keys, nil
}

// readAuthorities returns the certificate authorities in a PEM file. It has to have at least one.
func readAuthorities(file string) (*x509.CertPool, error) {
	text, err := readLimited(file, maxAuthorityBytes)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pemtext.WithoutMark(text)) {
		return nil, fmt.Errorf("%s has no certificate, expected PEM with certificate authorities", file)
	}
	return authorities, nil
}
