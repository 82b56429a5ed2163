// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"

	"github.com/c2sp/wycheproof"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/test/conformance/wire"
)

const fromWycheproof = "Wycheproof"

func wycheproofSource() source {
	return source{"github.com/c2sp/wycheproof", moduleVersion("github.com/c2sp/wycheproof"),
		"AES-GCM, ECDSA, RSA PKCS #1 v1.5, RSA-PSS, Ed25519, ML-DSA, AES key wrap, RSA-OAEP, HKDF"}
}

// moduleVersion returns the version of a module in this program.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return "unknown"
}

// hexBytes is a byte string in hexadecimal.
type hexBytes []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// wycheproofFile is a file of vectors; groups have what their tests share.
type wycheproofFile struct {
	Schema string            `json:"schema"`
	Tests  int               `json:"numberOfTests"`
	Groups []wycheproofGroup `json:"testGroups"`
}

// wycheproofGroup has the fields of all the kinds of groups that are run.
type wycheproofGroup struct {
	KeySize         int              `json:"keySize"`
	SHA             string           `json:"sha"`
	MGFSHA          string           `json:"mgfSha"`
	SaltLength      int              `json:"sLen"`
	PublicKeyDER    hexBytes         `json:"publicKeyDer"`
	PublicKey       json.RawMessage  `json:"publicKey"`
	PrivateKeyPKCS8 hexBytes         `json:"privateKeyPkcs8"`
	PrivateKey      json.RawMessage  `json:"privateKey"`
	PrivateSeed     hexBytes         `json:"privateSeed"`
	Tests           []wycheproofTest `json:"tests"`
}

// wycheproofTest has the fields of all the kinds of tests that are run.
type wycheproofTest struct {
	ID         int       `json:"tcId"`
	Comment    string    `json:"comment"`
	Flags      []string  `json:"flags"`
	Key        hexBytes  `json:"key"`
	IV         hexBytes  `json:"iv"`
	AAD        hexBytes  `json:"aad"`
	Message    *hexBytes `json:"msg"` // nil if the vector has only a digest of it
	Ciphertext hexBytes  `json:"ct"`
	Tag        hexBytes  `json:"tag"`
	Signature  hexBytes  `json:"sig"`
	Context    hexBytes  `json:"ctx"`
	Label      hexBytes  `json:"label"`
	// KeyMaterial, Salt, Info, Size and OutputKey are of key derivations. Size is in bytes.
	KeyMaterial hexBytes `json:"ikm"`
	Salt        hexBytes `json:"salt"`
	Info        hexBytes `json:"info"`
	Size        int      `json:"size"`
	OutputKey   hexBytes `json:"okm"`
	Result      string   `json:"result"`
}

// The results that a test can have. Acceptable leaves the decision to the implementation.
const (
	resultValid      = "valid"
	resultAcceptable = "acceptable"
	resultInvalid    = "invalid"
)

// set adds the vectors of one kind of file.
type set func(p *plan, file string, group wycheproofGroup, test wycheproofTest) error

// sets are the kinds of files, by their schema. Other kinds are about algorithms that no
// profile can have.
var sets = map[string]set{
	"ecdsa_verify_schema_v1.json":                   addECDSA(wire.FormatDER),
	"ecdsa_bitcoin_verify_schema.json":              addECDSA(wire.FormatDER),
	"ecdsa_p1363_verify_schema_v1.json":             addECDSA(wire.FormatRAW),
	"rsassa_pkcs1_verify_schema_v1.json":            addRSA,
	"rsassa_pss_verify_schema_v1.json":              addPSS,
	"rsassa_pss_with_parameters_verify_schema.json": addPSS,
	"eddsa_verify_schema_v1.json":                   addEdDSA,
	"mldsa_verify_schema.json":                      addMLDSA,
	"rsassa_pkcs1_generate_schema_v1.json":          addRSASigning,
	"mldsa_sign_seed_schema.json":                   addMLDSASigning,
	"mldsa_sign_noseed_schema.json":                 addMLDSASigningWithoutSeed,
	"rsaes_oaep_decrypt_schema_v1.json":             addOAEP,
}

// files are files of vectors by their names. Ciphers and digests that no profile can have share
// the schemas of these files.
var files = map[string]set{
	"aes_gcm_test.json":     addGCM,
	"aes_wrap_test.json":    addKeyWrap(algorithm.WrapAESKW),
	"aes_kwp_test.json":     addKeyWrap(algorithm.WrapAESKWP),
	"hkdf_sha256_test.json": addHKDF,
}

func (p *plan) addWycheproof() error {
	names, err := fs.Glob(wycheproof.TestVectors, "*.json")
	if err != nil {
		return err
	}
	var used []string
	for _, name := range names {
		data, err := fs.ReadFile(wycheproof.TestVectors, name)
		if err != nil {
			return err
		}
		var head struct {
			Schema string `json:"schema"`
		}
		if err := json.Unmarshal(data, &head); err != nil {
			return fmt.Errorf("read the vectors %s: %w", name, err)
		}
		add := sets[head.Schema]
		if file := files[name]; file != nil {
			add = file
		}
		if add == nil {
			continue
		}
		used = append(used, head.Schema, name)
		var file wycheproofFile
		if err := json.Unmarshal(data, &file); err != nil {
			return fmt.Errorf("read the vectors %s: %w", name, err)
		}
		found := 0
		for _, group := range file.Groups {
			for _, test := range group.Tests {
				found++
				if err := add(p, name, group, test); err != nil {
					return fmt.Errorf("%s, test %d: %w", name, test.ID, err)
				}
			}
		}
		if found != file.Tests {
			return fmt.Errorf("%s has %d tests, expected the %d that it announces", name, found, file.Tests)
		}
	}
	for schema := range sets {
		if !slices.Contains(used, schema) {
			return fmt.Errorf("no file of vectors has the schema %s", schema)
		}
	}
	for name := range files {
		if !slices.Contains(used, name) {
			return fmt.Errorf("there is no file of vectors %s", name)
		}
	}
	return nil
}

func (t wycheproofTest) name(file string) string {
	return fmt.Sprintf("%s, test %d (%s)", file, t.ID, t.Comment)
}

func addGCM(p *plan, file string, _ wycheproofGroup, test wycheproofTest) error {
	if test.Message == nil {
		return fmt.Errorf("found no message")
	}
	a := aead{test.Key, *test.Message, wire.Sealed{Nonce: test.IV, Additional: test.AAD, Ciphertext: test.Ciphertext, Tag: test.Tag}}
	profile, due := a.profileFor(p)
	algorithm := fmt.Sprintf("aes-gcm-%d", 8*len(test.Key))
	if test.Result != resultInvalid || len(due) > 0 {
		p.add(row{"EncryptData", algorithm, fromWycheproof}, test.name(file), encrypting(a, profile, due))
	}
	p.add(row{"DecryptData", algorithm, fromWycheproof}, test.name(file), decrypting(a, profile, due, test.Result == resultInvalid))
	return nil
}
