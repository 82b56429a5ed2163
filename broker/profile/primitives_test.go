// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// names returns the primitives of a use in a line, the halves of a hybrid on both sides of "|".
func primitiveNames(halves [][]algorithm.Primitive) string {
	var all []string
	for _, half := range halves {
		var names []string
		for _, p := range half {
			names = append(names, p.Name)
		}
		all = append(all, strings.Join(names, " "))
	}
	return strings.Join(all, " | ")
}

func TestWhatAUseIsMadeOfAndWhyFIPSDoesNotApproveIt(t *testing.T) {
	keys := func(keys ...UsedKey) (all [2]UsedKey) {
		copy(all[:], keys)
		return all
	}
	rsa2048, p256 := UsedKey{Algorithm: "RSA", Bits: 2048}, UsedKey{Algorithm: "ECDSA", Bits: 256, ID: "issuer"}
	for sentence, test := range map[string]struct {
		use             Use
		want, objection string
	}{
		"a digest":                {Use{Operation: OpHashData, Algorithm: "sha3-384"}, "sha3-384", ""},
		"RSA with its digest":     {Use{Operation: OpSignData, Algorithm: "rsa-with-sha-256", Keys: keys(rsa2048)}, "rsa-2048 sha-256", ""},
		"a short RSA key":         {Use{Operation: OpVerifyData, Algorithm: "rsa-pss-with-sha-512", Keys: keys(UsedKey{Algorithm: "RSA", Bits: 1024})}, "rsa-1024 sha-512", "RSA keys below 2048 bits, which FIPS 186-5 does not approve"},
		"Ed25519":                 {Use{Operation: OpSignData, Algorithm: "ed25519", Keys: keys(UsedKey{Algorithm: "Ed25519", Bits: 256})}, "ed25519", ""},
		"a hybrid signature":      {Use{Operation: OpSignData, Algorithm: "ecdsa-with-sha-256+ml-dsa-65", Keys: keys(p256, UsedKey{Algorithm: "ML-DSA-65"})}, "p-256 sha-256 | ml-dsa-65", "ml-dsa-65, which the validated module does not have"},
		"a certificate":           {Use{Operation: OpSignCertificate, Algorithm: "ecdsa-with-sha-384", Keys: keys(p256, rsa2048)}, "p-256 sha-384 rsa-2048", ""},
		"a request with SHA-1":    {Use{Operation: OpSignCertificate, Algorithm: "ecdsa-with-sha-384", Keys: keys(p256, rsa2048), SHA1Request: true}, "p-256 sha-384 rsa-2048 sha-1", "sha-1, which FIPS 140-3 does not approve"},
		"encryption":              {Use{Operation: OpEncryptData, Algorithm: "aes-gcm", Keys: keys(UsedKey{Algorithm: "AES", Bits: 192})}, "aes-192", ""},
		"a nonce of the caller":   {Use{Operation: OpEncryptData, Algorithm: "aes-gcm", GivenNonce: true, Keys: keys(UsedKey{Algorithm: "AES", Bits: 256})}, "aes-256", "the caller makes the nonce"},
		"decryption":              {Use{Operation: OpDecryptData, Algorithm: "aes-gcm", GivenNonce: true, Keys: keys(UsedKey{Algorithm: "AES", Bits: 128})}, "aes-128", ""},
		"a data key":              {Use{Operation: OpGenerateDataKey, Algorithm: "aes-gcm", Keys: keys(UsedKey{Algorithm: "AES", Bits: 256}, UsedKey{Algorithm: DataKey, Bits: 128})}, "aes-256 data-key-128", ""},
		"a key of unknown size":   {Use{Operation: OpWrapKey, Algorithm: "aes-kw", Keys: keys(UsedKey{Algorithm: "AES", ID: "k"})}, "aes", "aes-kw, which the validated module does not have"},
		"RSA-OAEP with SHA-1":     {Use{Operation: OpUnwrapKey, Algorithm: "rsa-oaep-sha-1", Keys: keys(rsa2048)}, "rsa-2048 sha-1", "rsa-oaep-sha-1, which FIPS 140-3 does not approve"},
		"a hybrid wrapping":       {Use{Operation: OpUnwrapKey, Algorithm: "hpke-mlkem768-x25519", Keys: keys(UsedKey{ID: "k"})}, "ml-kem-768 aes-256 | x25519 aes-256", "hpke-mlkem768-x25519, which the validated module does not have"},
		"a key that is rewrapped": {Use{Operation: OpRewrapKey, Algorithm: "aes-gcm", Keys: keys(UsedKey{Algorithm: "rsa-oaep-sha-1"}, UsedKey{Algorithm: "AES", Bits: 256})}, "rsa sha-1 aes-256", "rsa-oaep-sha-1, which FIPS 140-3 does not approve"},
		"a stream":                {Use{Operation: OpEncryptStream, Algorithm: "aes-gcm", Keys: keys(UsedKey{Algorithm: "AES", Bits: 128})}, "aes-128 aes-256 sha-256", "aes256-gcm-hkdf-64kb, which the validated module does not have"},
		"a stream that is read":   {Use{Operation: OpDecryptStream, Algorithm: "aes-gcm", Keys: keys(UsedKey{Algorithm: "AES", Bits: 128})}, "aes-128 aes-256 sha-256", ""},
		"a session":               {Use{Operation: OpOpenRequest, Algorithm: "session-v2"}, "p-256 sha-256 aes-256", ""},
		"a native session":        {Use{Operation: OpInitSession, Algorithm: "session-hpke-p256", Keys: keys(UsedKey{Algorithm: "ML-DSA-65"})}, "p-256 sha-256 aes-256 ml-dsa-65", "ML-DSA-65, which the validated module does not have"},
		"a hybrid session":        {Use{Operation: OpRekeySession, Algorithm: "session-hpke-x-wing"}, "ml-kem-768 sha-256 aes-256 | x25519 sha-256 aes-256", "session-hpke-x-wing, which FIPS 140-3 does not approve"},
		"an ended session":        {Use{Operation: OpCloseSession}, "", ""},
		"a public key":            {Use{Operation: OpGetPublicKey, Keys: keys(rsa2048)}, "rsa-2048", ""},
		"a batch without keys":    {Use{Operation: OpUnwrapKey}, "", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			halves, known := test.use.Primitives()
			if found := primitiveNames(halves); !known || found != test.want {
				t.Errorf("found %q, known: %v, expected %q", found, known, test.want)
			}
			if found := test.use.Objection(); found != test.objection {
				t.Errorf("found the objection %q, expected %q", found, test.objection)
			}
		})
	}
}

func TestPrimitivesOfWhatNoBrokerUsesAreNotKnown(t *testing.T) {
	one := func(algorithm string, bits int) [2]UsedKey { return [2]UsedKey{{Algorithm: algorithm, Bits: bits}} }
	for sentence, use := range map[string]Use{
		"an unknown digest":               {Operation: OpHashData, Algorithm: "sha-4"},
		"an unknown signature":            {Operation: OpSignData, Algorithm: "rot13-with-sha-256", Keys: one("RSA", 2048)},
		"a signature without its digest":  {Operation: OpSignData, Algorithm: "rsa", Keys: one("RSA", 2048)},
		"a signature without its key":     {Operation: OpSignData, Algorithm: "rsa-with-sha-256"},
		"a key of another algorithm":      {Operation: OpSignData, Algorithm: "rsa-with-sha-256", Keys: one("ECDSA", 256)},
		"an RSA key without end":          {Operation: OpSignData, Algorithm: "rsa-with-sha-256", Keys: one("RSA", 1<<40)},
		"a curve that there is not":       {Operation: OpGetPublicKey, Keys: one("ECDSA", 300)},
		"a size below zero":               {Operation: OpGetPublicKey, Keys: one("RSA", -1)},
		"ML-DSA of a size":                {Operation: OpSignData, Algorithm: "ml-dsa-44", Keys: one("ML-DSA-44", 44)},
		"three signatures":                {Operation: OpSignData, Algorithm: "ed25519+ed25519+ed25519", Keys: [2]UsedKey{{Algorithm: "Ed25519", Bits: 256}, {Algorithm: "Ed25519", Bits: 256}}},
		"AES of a size that there is not": {Operation: OpEncryptData, Algorithm: "aes-gcm", Keys: one("AES", 512)},
		"a wrapping that there is not":    {Operation: OpUnwrapKey, Algorithm: "des", Keys: one("AES", 128)},
		"a small RSA key that wraps":      {Operation: OpUnwrapKey, Algorithm: "rsa-oaep-sha-256", Keys: one("RSA", 1024)},
		"a data key of no size":           {Operation: OpGenerateDataKey, Algorithm: "aes-gcm", Keys: one("AES", 128)},
		"a rewrapped key from nowhere":    {Operation: OpRewrapKey, Algorithm: "aes-gcm", Keys: one("des", 0)},
		"an unknown session":              {Operation: OpInitSession, Algorithm: "session-v9"},
	} {
		if halves, known := use.Primitives(); known {
			t.Errorf("%s: found %s", sentence, primitiveNames(halves))
		}
	}
}
