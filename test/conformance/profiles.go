// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// profileSet collects the profiles that vectors need, by name. Some have values on
// purpose that the format of profiles does not have, so that the broker refuses them.
type profileSet struct {
	served   map[string]string // text by name
	unserved map[string]string
	further  string // entries from elsewhere
	expect   int    // how many further entries there are
	// keys are the files of the key directory, by their names.
	keys map[string][]byte
}

func newProfileSet() *profileSet {
	return &profileSet{served: map[string]string{}, unserved: map[string]string{}, keys: map[string][]byte{}}
}

// file returns the content of Profiles.yaml.
func (p *profileSet) file() string {
	var text strings.Builder
	for _, profiles := range []map[string]string{p.served, p.unserved} {
		for _, name := range slices.Sorted(maps.Keys(profiles)) {
			fmt.Fprintf(&text, "- Name: %s\n  API: {%s}\n", name, profiles[name])
		}
	}
	return text.String() + p.further
}

// add adds a profile. If the format of profiles does not have the value, it returns the
// refusal that calls with the profile have to get.
func (p *profileSet) add(name, api, value string, known bool) (string, []refusal) {
	if known {
		p.served[name] = api
		return name, nil
	}
	p.unserved[name] = api
	return name, []refusal{{"profiles do not have " + value, sayingUnserved}}
}

// wholeTagSize is the size of a tag of AES-GCM that is not cut, in bits.
const wholeTagSize = 128

var (
	hashAlgorithms      = []string{"sha-256", "sha-384", "sha-512", "sha-512/256", "sha3-256", "sha3-384", "sha3-512", "shake-128", "shake-256"}
	signatureHashes     = []string{"sha-256", "sha-384", "sha-512", "sha3-256", "sha3-384", "sha3-512"}
	shortTagSizes       = []int{96, 104, 112, 120}
	postQuantumSigning  = []string{"ml-dsa-44", "ml-dsa-65", "ml-dsa-87"}
	signingWithNoDigest = append([]string{"ed25519"}, postQuantumSigning...)
)

func (p *profileSet) hash(algorithm string) (string, []refusal) {
	return p.add("hash-"+algorithm, "HashData: {HashAlg: "+algorithm+"}",
		"HashAlg "+algorithm+" for HashData", slices.Contains(hashAlgorithms, algorithm))
}

func (p *profileSet) cipher(keySize, tagSize int) (string, []refusal) {
	name, api := fmt.Sprintf("aes-gcm-%d-%d", keySize, tagSize), fmt.Sprintf("EncryptAlg: aes-gcm, KeySize: %d", keySize)
	if tagSize == wholeTagSize {
		return p.add(name, "EncryptData: {"+api+"}", "", true)
	}
	return p.add(name, fmt.Sprintf("EncryptData: {%s, ShortTagLength: %d}", api, tagSize),
		fmt.Sprintf("ShortTagLength %d", tagSize), slices.Contains(shortTagSizes, tagSize))
}

// stream adds a profile for streams whose data keys are wrapped in one way.
func (p *profileSet) stream(wrapping string) string {
	name, _ := p.add("stream-"+wrapping, "DataKeys: {WrapAlgs: ["+wrapping+"], KeySize: 256, KeyIds: [{Id: "+wrappingKeyID+"}]}", "", true)
	return name
}

// signature adds a profile with the widest limits on the size of keys, because vectors
// have larger RSA keys than requests may bring by default.
func (p *profileSet) signature(algorithm, hash string) (string, []refusal) {
	if slices.Contains(postQuantumSigning, algorithm) {
		return p.add(algorithm, "SignData: {SigningMode: post-quantum, SignAlg: "+algorithm+"}", "", true)
	}
	if slices.Contains(signingWithNoDigest, algorithm) {
		return p.add(algorithm, "SignData: {SignAlg: "+algorithm+"}", "", true)
	}
	limits := ""
	if strings.HasPrefix(algorithm, "rsa") {
		limits = ", KeyConstraints: {Issuer: {RSA: {MinKeySize: 2048, MaxKeySize: 16384}}}"
	}
	return p.add(algorithm+"-with-"+hash, "SignData: {SignAlg: "+algorithm+", HashAlg: "+hash+limits+"}",
		"HashAlg "+hash+" for SignData", slices.Contains(signatureHashes, hash))
}
