// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// TestAFileWithTenMistakesGivesTenLines compares with a file that holds what a
// user would see. UPDATE_GOLDEN=1 writes it again.
func TestAFileWithTenMistakesGivesTenLines(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "ten-mistakes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	set, problems := profile.Compile("ten-mistakes.yaml", data)
	if len(problems) != 10 {
		t.Errorf("found %d problems, planted 10", len(problems))
	}
	golden := filepath.Join("testdata", "ten-mistakes.golden")
	got := problems.String() + "\n"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if set == nil {
		t.Fatal("the valid profile beside the mistakes is not served")
	}
	if diff := cmp.Diff([]string{"Good"}, set.Names()); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
}

// hash is a valid profile file with more of the profile's fields, indented.
func hash(more ...string) string {
	return "- Name: P\n  API:\n    HashData:\n      HashAlg: sha-256\n" + strings.Join(more, "")
}

// certificate is a valid profile file whose SignCertificate has more fields.
func certificate(more string) string {
	return "- Name: P\n  API:\n    SignCertificate:\n      SignAlg: ecdsa\n      HashAlg: sha-256\n      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}\n" + more
}

// operation is a profile file with one operation.
const wrappings = `"aes-kw", "aes-kwp", "aes-gcm", "rsa-oaep-sha-1", "rsa-oaep-sha-256", "rsa-oaep-sha-384", "rsa-oaep-sha-512", "hpke-p-256", "hpke-p-384", "hpke-p-521", "hpke-ml-kem-768", "hpke-ml-kem-1024" or "hpke-mlkem768-x25519"`

func operation(name, fields string) string {
	return "- Name: P\n  API:\n    " + name + ": {" + fields + "}\n"
}

func TestEachMistakeIsNamedAtItsPlace(t *testing.T) {
	const sign = "SignAlg: ecdsa, HashAlg: sha-256"
	const window = "Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}"
	for sentence, test := range map[string]struct{ file, want string }{
		"an empty file":                        {"", `1:1: the file is empty, expected a list of profiles or a map with the key "Profiles"`},
		"only a comment":                       {"# nothing\n", `1:1: the file is empty, expected a list of profiles or a map with the key "Profiles"`},
		"no YAML":                              {"- Name: [P\n", `2:1: not readable as YAML: did not find expected ',' or ']'`},
		"no YAML further down":                 {"- Name: P\n  API: {\n- Name: Q\n", `3:1: not readable as YAML: did not find expected node content`},
		"text at the root":                     {"profiles\n", `1:1: found the text "profiles" at the root, expected a list of profiles or a map with the key "Profiles"`},
		"two documents":                        {hash() + "---\n" + hash(), `5:1: found a second YAML document, expected one document in the file`},
		"a map without profiles":               {"FormatVersion: 1\n", `1:1: Profiles: is missing, expected a list of profiles`},
		"profiles that are no list":            {"Profiles: {}\n", `1:11: Profiles: found a map, expected a list of profiles`},
		"an unknown key at the root":           {"Profile: []\nProfiles: []\n", `1:1: Profile: unknown field "Profile", expected "FormatVersion", "Settings", "KMS" or "Profiles"; did you mean "Profiles"?`},
		"a version of the future":              {"FormatVersion: 3\nProfiles: []\n", `1:16: FormatVersion: found 3, expected a whole number from 0 to 2, the newest version this broker reads`},
		"an unknown library for all":           {"Settings: {CryptoLibrary: openssl}\nProfiles: []\n", `1:27: Settings.CryptoLibrary: unknown value "openssl", expected "native"`},
		"a profile that is no map":             {"- P\n", `1:3: found the text "P", expected a map with "Name", "Settings", "KMS", "API", "Callers", "Audit", "Deprecation" or "Rollout"`},
		"a profile without a name":             {"- API: {HashData: {HashAlg: sha-256}}\n", `1:3: Name: is missing, expected a name of 1 to 64 bytes`},
		"an empty name":                        {"- Name: \"\"\n  API: {HashData: {HashAlg: sha-256}}\n", `1:9: Name: is empty, expected a name of 1 to 64 bytes`},
		"a name that is no text":               {"- Name: true\n  API: {HashData: {HashAlg: sha-256}}\n", `1:9: Name: found the boolean true, expected text`},
		"a name that is too long":              {"- Name: " + strings.Repeat("n", 65) + "\n  API: {HashData: {HashAlg: sha-256}}\n", `1:9: profile "` + strings.Repeat("n", 65) + `": Name: the name has 65 bytes, expected at most 64`},
		"a name with a line break":             {"- Name: \"P\\nQ\"\n  API: {HashData: {HashAlg: sha-256}}\n", `1:9: profile "P\nQ": Name: found "P\nQ", expected printable characters only`},
		"a name with a space at its end":       {"- Name: \"P \"\n  API: {HashData: {HashAlg: sha-256}}\n", `1:9: profile "P ": Name: found "P ", expected no space at the ends`},
		"a name that is there twice":           {hash() + hash(), `5:9: profile "P": Name: the name "P" is taken by the profile on line 1; neither is served while both have it`},
		"no operation":                         {"- Name: P\n  API: {}\n", `2:3: profile "P": API: offers no operation, expected at least one of "HashData", "SignCertificate", "EncryptData", "SignData", "DataKeys" or "Session"`},
		"no API":                               {"- Name: P\n", `1:3: profile "P": API: offers no operation, expected at least one of "HashData", "SignCertificate", "EncryptData", "SignData", "DataKeys" or "Session"`},
		"a misspelt operation":                 {"- Name: P\n  API: {HashDatta: {HashAlg: sha-256}}\n", `2:9: profile "P": API.HashDatta: unknown field "HashDatta", expected "HashData", "SignCertificate", "EncryptData", "SignData", "DataKeys" or "Session"; did you mean "HashData"?`},
		"an operation without value":           {"- Name: P\n  API:\n    HashData:\n", `3:5: profile "P": API.HashData: has no value, expected a map with "HashAlg"; leave the field out if it is not needed`},
		"a missing algorithm":                  {"- Name: P\n  API:\n    HashData: {}\n", `3:5: profile "P": API.HashData.HashAlg: is missing, expected one of "sha-256", "sha-384", "sha-512", "sha-512/256", "sha3-256", "sha3-384", "sha3-512", "shake-128" or "shake-256"`},
		"a key with other capitals":            {"- Name: P\n  API: {HashData: {hashAlg: sha-256}}\n", `2:20: profile "P": API.HashData.hashAlg: unknown field "hashAlg", expected "HashAlg"; did you mean "HashAlg"?`},
		"a key that is there twice":            {"- Name: P\n  API: {HashData: {HashAlg: sha-256, HashAlg: sha-512}}\n", `2:38: profile "P": API.HashData.HashAlg: the key is there twice, first on line 2`},
		"an unknown library":                   {hash("  Settings: {CryptoLibrary: bouncy}\n"), `5:29: profile "P": Settings.CryptoLibrary: unknown value "bouncy", expected "native"`},
		"Callers that restrict nothing":        {hash("  Callers: {}\n"), `5:3: profile "P": Callers: restricts nothing, expected at least one of "Containers", "UIDs" or "GIDs"; leave the field out to allow every caller`},
		"an empty list of users":               {hash("  Callers: {UIDs: []}\n"), `5:13: profile "P": Callers.UIDs: the list is empty, expected at least one value; leave the field out to allow every caller`},
		"no list of users":                     {hash("  Callers: {UIDs: }\n"), `5:13: profile "P": Callers.UIDs: has no value, expected a list; leave the field out if it is not needed`},
		"a user below 0":                       {hash("  Callers: {UIDs: [-1]}\n"), `5:20: profile "P": Callers.UIDs[0]: found -1, expected a user id from 0 to 4294967294`},
		"a group above all":                    {hash("  Callers: {GIDs: [4294967295]}\n"), `5:20: profile "P": Callers.GIDs[0]: found 4294967295, expected a group id from 0 to 4294967294`},
		"a user in octal digits":               {hash("  Callers: {UIDs: [0700]}\n"), `5:20: profile "P": Callers.UIDs[0]: found the number 0700, expected a whole number`},
		"a container of no such name":          {hash("  Callers: {Containers: [a_b]}\n"), `5:26: profile "P": Callers.Containers[0]: found "a_b", expected the name of a container: at most 63 lower-case letters, digits and inner hyphens`},
		"an unknown audit level":               {hash("  Audit: {Level: some}\n"), `5:18: profile "P": Audit.Level: unknown value "some", expected one of "none", "sampled", "sensitive" or "all"`},
		"an audit that never records":          {hash("  Audit: {Level: none, Required: true}\n"), `5:34: profile "P": Audit.Required: is true while Level is "none", so that no call could ever be recorded`},
		"a boolean in quotes":                  {hash("  Audit: {Level: all, Required: \"true\"}\n"), `5:33: profile "P": Audit.Required: found the text "true", expected true or false`},
		"a profile replaced by itself":         {hash("  Deprecation: {ReplacedBy: P}\n"), `5:29: profile "P": Deprecation.ReplacedBy: names the deprecated profile itself, expected another one`},
		"a reason that is too long":            {hash("  Deprecation: {Reason: " + strings.Repeat("r", 1025) + "}\n"), `5:25: profile "P": Deprecation.Reason: the text has 1025 bytes, expected at most 1024`},
		"a key manager's null":                 {hash("  KMS: {Config: {token: }}\n"), `5:25: profile "P": KMS.Config.token: has no value, expected text, a whole number, a decimal number, true or false, a list or a map`},
		"a key manager's settings in a path":   {hash("  KMS: {Client: openbao, Config: ../token}\n"), `5:34: profile "P": KMS.Config: is not the name of a file, expected 1 to 253 letters, digits, "-", "_" and ".", the first one no "."`},
		"a key manager's settings in a list":   {hash("  KMS: {Client: openbao, Config: [a]}\n"), `5:34: profile "P": KMS.Config: found a list, expected text, or a map`},
		"a key manager's settings that are no": {hash("  KMS: {Client: openbao, Config: }\n"), `5:26: profile "P": KMS.Config: has no value, expected text, or a map; leave the field out if it is not needed`},
		"a cache that is text":                 {hash("  KMS: {Client: openbao, Cache: \"no\"}\n"), `5:33: profile "P": KMS.Cache: found the text "no", expected true or false, or a map`},
		"an unknown signature":                 {operation("SignCertificate", "SignAlg: dsa, HashAlg: sha-256, "+window), `3:32: profile "P": API.SignCertificate.SignAlg: unknown value "dsa", expected one of "rsa", "ecdsa", "rsa-pss" or "ed25519"; did you mean "rsa"?`},
		"a digest beside Ed25519":              {operation("SignCertificate", "SignAlg: ed25519, HashAlg: sha-512, "+window), `3:50: profile "P": API.SignCertificate.HashAlg: found "sha-512", expected no HashAlg, since ed25519 fixes its own digest`},
		"a certificate digest of SHA-3":        {operation("SignCertificate", "SignAlg: rsa, HashAlg: sha3-256, "+window), `3:46: profile "P": API.SignCertificate.HashAlg: unknown value "sha3-256", expected one of "sha-256", "sha-384" or "sha-512"; did you mean "sha-256"?`},
		"a key identifier of MD5":              {certificate("      SKIHashAlg: md5\n"), `7:19: profile "P": API.SignCertificate.SKIHashAlg: unknown value "md5", expected one of "sha-1", "sha-256", "sha-384", "sha-512", "sha3-256", "sha3-384" or "sha3-512"`},
		"no validity":                          {operation("SignCertificate", sign), `3:5: profile "P": API.SignCertificate.Validity: is missing, expected ValidNotBeforeOffset and ValidNotAfterOffset`},
		"half a validity":                      {operation("SignCertificate", sign+", Validity: {ValidNotAfterOffset: 1h}"), `3:57: profile "P": API.SignCertificate.Validity.ValidNotBeforeOffset: is missing, expected a duration such as "-1h" or "8760h"`},
		"a validity that is over":              {operation("SignCertificate", sign+", Validity: {ValidNotBeforeOffset: -2h, ValidNotAfterOffset: -1h}"), `3:116: profile "P": API.SignCertificate.Validity.ValidNotAfterOffset: found "-1h", expected a time after the signing, or every certificate would be expired`},
		"a validity that ends too early":       {operation("SignCertificate", sign+", Validity: {ValidNotBeforeOffset: 2h, ValidNotAfterOffset: 1h}"), `3:115: profile "P": API.SignCertificate.Validity.ValidNotAfterOffset: found "1h", expected more than ValidNotBeforeOffset, which is "2h"`},
		"a validity that begins too late":      {operation("SignCertificate", sign+", Validity: {ValidNotBeforeOffset: 2562047h47m16.1s, ValidNotAfterOffset: 2562047h47m16.8s}"), `3:90: profile "P": API.SignCertificate.Validity.ValidNotBeforeOffset: found "2562047h47m16.1s", expected at most 2562047h47m15s`},
		"a validity in days":                   {operation("SignCertificate", sign+", Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 365d}"), `3:116: profile "P": API.SignCertificate.Validity.ValidNotAfterOffset: found "365d", expected a duration such as "-1h" or "8760h"`},
		"a key algorithm in other case":        {certificate("      KeyConstraints: {Subject: {Rsa: {MinKeySize: 2048, MaxKeySize: 4096}}}\n"), `7:34: profile "P": API.SignCertificate.KeyConstraints.Subject.Rsa: unknown key algorithm "Rsa", expected one of "RSA", "ECDSA" or "Ed25519"; did you mean "RSA"?`},
		"a key that is too small":              {certificate("      KeyConstraints: {Issuer: {RSA: {MinKeySize: 512, MaxKeySize: 4096}}}\n"), `7:51: profile "P": API.SignCertificate.KeyConstraints.Issuer.RSA.MinKeySize: found 512, expected a size in bits from 1024 to 16384`},
		"a key without upper bound":            {certificate("      KeyConstraints: {Issuer: {ECDSA: {MinKeySize: 256}}}\n"), `7:33: profile "P": API.SignCertificate.KeyConstraints.Issuer.ECDSA.MaxKeySize: is missing, expected a size in bits from 224 to 521`},
		"a key usage in other case":            {certificate("      KeyUsage: [crlSign]\n"), `7:18: profile "P": API.SignCertificate.KeyUsage[0]: unknown value "crlSign", expected one of "digitalSignature", "contentCommitment", "nonRepudiation", "keyEncipherment", "dataEncipherment", "keyAgreement", "keyCertSign", "cRLSign", "encipherOnly" or "decipherOnly"; did you mean "cRLSign"?`},
		"an unknown extended key usage":        {certificate("      ExtendedKeyUsage: [anyUsage]\n"), `7:26: profile "P": API.SignCertificate.ExtendedKeyUsage[0]: unknown value "anyUsage", expected one of "serverAuth", "clientAuth", "codeSigning", "emailProtection", "timeStamping" or "OCSPSigning"`},
		"a path length without CA":             {certificate("      BasicConstraints: {PathLenConstraint: 0}\n"), `7:45: profile "P": API.SignCertificate.BasicConstraints.PathLenConstraint: is only allowed where CA is true`},
		"a path length below 0":                {certificate("      BasicConstraints: {CA: true, PathLenConstraint: -1}\n"), `7:55: profile "P": API.SignCertificate.BasicConstraints.PathLenConstraint: found -1, expected a number of certificates from 0 to 255`},
		"patterns that do not apply":           {certificate("      SubjectAltNames: {Rule: copy, DNS: [example.com]}\n"), `7:37: profile "P": API.SignCertificate.SubjectAltNames.DNS: is only allowed where Rule is "patterns", found Rule "copy"`},
		"patterns without any":                 {certificate("      SubjectAltNames: {Rule: patterns}\n"), `7:7: profile "P": API.SignCertificate.SubjectAltNames: has Rule "patterns" and no pattern, expected at least one in DNS, IP, URI or Email`},
		"a star inside a name":                 {certificate("      SubjectAltNames: {Rule: patterns, DNS: [a.*.com]}\n"), `7:47: profile "P": API.SignCertificate.SubjectAltNames.DNS[0]: found "a.*.com", expected a DNS name such as "app.example.com" or "*.example.com"`},
		"a range with host bits":               {certificate("      SubjectAltNames: {Rule: patterns, IP: [10.1.0.0/8]}\n"), `7:46: profile "P": API.SignCertificate.SubjectAltNames.IP[0]: found "10.1.0.0/8", expected an address or a range such as "10.0.0.0/8"`},
		"a URI without scheme":                 {certificate("      SubjectAltNames: {Rule: patterns, URI: [example.com]}\n"), `7:47: profile "P": API.SignCertificate.SubjectAltNames.URI[0]: found "example.com", expected a URI such as "spiffe://example.com/ns/*", where "*" is the host's first label, a segment of the path or its end`},
		"an address without domain":            {certificate("      SubjectAltNames: {Rule: patterns, Email: [ops]}\n"), `7:49: profile "P": API.SignCertificate.SubjectAltNames.Email[0]: found "ops", expected an address such as "ops@example.com" or "*@example.com"`},
		"names that are denied, required":      {certificate("      SubjectAltNames: {Rule: deny, Required: true}\n"), `7:47: profile "P": API.SignCertificate.SubjectAltNames.Required: is true while Rule is "deny", which leaves all names out, expected Rule "copy" or "patterns"`},
		"points by an unknown rule":            {certificate("      CRLDistributionPoints: {Rule: copy}\n"), `7:37: profile "P": API.SignCertificate.CRLDistributionPoints.Rule: unknown value "copy", expected one of "any", "deny" or "patterns"`},
		"points without a rule":                {certificate("      CRLDistributionPoints: {URI: ['http://a/*']}\n"), `7:7: profile "P": API.SignCertificate.CRLDistributionPoints.Rule: is missing, expected one of "any", "deny" or "patterns"`},
		"points by no pattern":                 {certificate("      CRLDistributionPoints: {Rule: patterns}\n"), `7:7: profile "P": API.SignCertificate.CRLDistributionPoints: has Rule "patterns" and no pattern, expected at least one in URI`},
		"points that are denied, patterns":     {certificate("      CRLDistributionPoints: {Rule: deny, URI: ['http://a/*']}\n"), `7:43: profile "P": API.SignCertificate.CRLDistributionPoints.URI: is only allowed where Rule is "patterns", found Rule "deny"`},
		"points of LDAP":                       {certificate("      CRLDistributionPoints: {Rule: patterns, URI: ['ldap://a/*']}\n"), `7:53: profile "P": API.SignCertificate.CRLDistributionPoints.URI[0]: found "ldap://a/*", expected a URL of http or https such as "http://crl.example.com/*", where "*" is the host's first label, a segment of the path or its end`},
		"an empty list of keys":                {certificate("      KeyIds: []\n"), `7:7: profile "P": API.SignCertificate.KeyIds: the list is empty, expected at least one key; leave the field out where requests bring their keys`},
		"every key of the broker, and one":     {operation("SignData", `SignAlg: ed25519, KeyIds: [{Id: a}, {Id: "*"}]`), `3:57: profile "P": API.SignData.KeyIds[1].Id: found "*", which stands for every key of the broker, together with other keys, expected it as the only entry`},
		"a pin of every key":                   {operation("SignData", `SignAlg: ed25519, KeyIds: [{Id: "*", SPKISHA256: "`+strings.Repeat("00", 32)+`"}]`), `3:65: profile "P": API.SignData.KeyIds[0].SPKISHA256: found a pin of "*", which stands for every key of the broker, expected no SPKISHA256`},
		"a pin of every AES key":               {operation("EncryptData", `EncryptAlg: aes-gcm, KeySize: 128, KeyIds: [{Id: "*", SPKISHA256: "`+strings.Repeat("00", 32)+`"}]`), `3:85: profile "P": API.EncryptData.KeyIds[0].SPKISHA256: found a pin of "*", which stands for every key of the broker, expected no SPKISHA256`},
		"every key for certificates":           {certificate("      KeyIds: [{Id: \"*\"}]\n"), `7:21: profile "P": API.SignCertificate.KeyIds[0].Id: found "*", which stands for every key of the broker, expected the id of the issuer's key: requests of SignCertificate have no field that names one`},
		"a key id with a space":                {certificate("      KeyIds: [{Id: a b}]\n"), `7:21: profile "P": API.SignCertificate.KeyIds[0].Id: found "a b", expected printable ASCII without spaces`},
		"a key id that is there twice":         {certificate("      KeyIds: [{Id: a}, {Id: a}]\n"), `7:30: profile "P": API.SignCertificate.KeyIds[1].Id: the key id "a" is already in the list, at index 0`},
		"a pin that is too short":              {certificate("      KeyIds: [{Id: a, SPKISHA256: abcd}]\n"), `7:36: profile "P": API.SignCertificate.KeyIds[0].SPKISHA256: found "abcd", expected 64 hexadecimal digits, the SHA-256 of the public key`},
		"no wrapping algorithm":                {operation("DataKeys", "KeySize: 256, KeyIds: [{Id: k}]"), `3:5: profile "P": API.DataKeys.WrapAlgs: is missing, expected at least one of ` + wrappings},
		"an unknown wrapping algorithm":        {operation("DataKeys", "WrapAlgs: [aes-gmc], KeySize: 256, KeyIds: [{Id: k}]"), `3:27: profile "P": API.DataKeys.WrapAlgs[0]: unknown value "aes-gmc", expected one of ` + wrappings + `; did you mean "aes-gcm"?`},
		"a wrapping algorithm twice":           {operation("DataKeys", "WrapAlgs: [aes-gcm, AES-GCM], KeySize: 256, KeyIds: [{Id: k}]"), `3:36: profile "P": API.DataKeys.WrapAlgs[1]: the algorithm "aes-gcm" is already in the list`},
		"a context that key wrap has not":      {operation("DataKeys", "WrapAlgs: [aes-gcm, aes-kw], KeySize: 256, Context: required, KeyIds: [{Id: k}]"), `3:36: profile "P": API.DataKeys.WrapAlgs[1]: aes-kw cannot bind a data key to a context, expected another algorithm, because Context is "required"`},
		"an unknown rule for contexts":         {operation("DataKeys", "WrapAlgs: [aes-gcm], KeySize: 256, Context: never, KeyIds: [{Id: k}]"), `3:60: profile "P": API.DataKeys.Context: unknown value "never", expected one of "required", "optional" or "none"`},
		"no size of data keys":                 {operation("DataKeys", "WrapAlgs: [aes-gcm], KeyIds: [{Id: k}]"), `3:5: profile "P": API.DataKeys.KeySize: is missing, expected one of 128, 192 or 256 bits`},
		"no wrapping keys":                     {operation("DataKeys", "WrapAlgs: [aes-gcm], KeySize: 256"), `3:5: profile "P": API.DataKeys.KeyIds: is missing, expected at least one key, because data keys are wrapped with keys of the broker`},
		"an unknown cipher":                    {operation("EncryptData", "EncryptAlg: aes-cbc, KeySize: 128"), `3:31: profile "P": API.EncryptData.EncryptAlg: unknown value "aes-cbc", expected "aes-gcm"`},
		"a missing key size":                   {operation("EncryptData", "EncryptAlg: aes-gcm"), `3:5: profile "P": API.EncryptData.KeySize: is missing, expected one of 128, 192 or 256 bits`},
		"a key size that AES has not":          {operation("EncryptData", "EncryptAlg: aes-gcm, KeySize: 512"), `3:49: profile "P": API.EncryptData.KeySize: found 512, expected one of 128, 192 or 256 bits`},
		"an unknown nonce strategy":            {operation("EncryptData", "EncryptAlg: aes-gcm, KeySize: 128, NonceStrategy: counter"), `3:69: profile "P": API.EncryptData.NonceStrategy: unknown value "counter", expected one of "user-provided" or "random"`},
		"a short tag":                          {operation("EncryptData", "EncryptAlg: aes-gcm, KeySize: 128, TagLength: 64"), `3:65: profile "P": API.EncryptData.TagLength: found 64, expected one of 96, 104, 112, 120 or 128 bits`},
		"a tag that is too short":              {operation("EncryptData", "EncryptAlg: aes-gcm, KeySize: 128, ShortTagLength: 64"), `3:70: profile "P": API.EncryptData.ShortTagLength: found 64, expected one of 96, 104, 112 or 120 bits`},
		"a short tag that is whole":            {operation("EncryptData", "EncryptAlg: aes-gcm, KeySize: 128, ShortTagLength: 128"), `3:70: profile "P": API.EncryptData.ShortTagLength: found 128, expected one of 96, 104, 112 or 120 bits`},
		"a post-quantum legacy":                {operation("SignData", "SigningMode: legacy, SignAlg: ml-dsa-65"), `3:46: profile "P": API.SignData.SignAlg: found "ml-dsa-65" in mode "legacy", expected one of "rsa", "ecdsa", "rsa-pss" or "ed25519"; "ml-dsa-65" is for SigningMode "post-quantum"`},
		"a hybrid of one":                      {operation("SignData", "SigningMode: hybrid, SignAlg: ml-dsa-65"), `3:46: profile "P": API.SignData.SignAlg: found "ml-dsa-65" in mode "hybrid", expected one of "rsa", "ecdsa", "rsa-pss" or "ed25519" and one of "ml-dsa-44", "ml-dsa-65" or "ml-dsa-87", joined by +, such as "ecdsa+ml-dsa-65"; "ml-dsa-65" is for SigningMode "post-quantum"`},
		"a hybrid of something":                {operation("SignData", "SigningMode: hybrid, SignAlg: dsa+ml-dsa-65, HashAlg: sha-256"), `3:46: profile "P": API.SignData.SignAlg: found "dsa+ml-dsa-65" in mode "hybrid", expected one of "rsa", "ecdsa", "rsa-pss" or "ed25519" and one of "ml-dsa-44", "ml-dsa-65" or "ml-dsa-87", joined by +, such as "ecdsa+ml-dsa-65"`},
		"a hybrid without a mode":              {operation("SignData", "SignAlg: ECDSA+ML-DSA-65, HashAlg: sha-256"), `3:25: profile "P": API.SignData.SignAlg: found "ECDSA+ML-DSA-65" in mode "legacy", expected one of "rsa", "ecdsa", "rsa-pss" or "ed25519"; "ECDSA+ML-DSA-65" is for SigningMode "hybrid"`},
		"a digest beside ML-DSA":               {operation("SignData", "SigningMode: post-quantum, SignAlg: ml-dsa-65, HashAlg: sha-256"), `3:72: profile "P": API.SignData.HashAlg: found "sha-256", expected no HashAlg, since ml-dsa-65 fixes its own digest`},
		"an unknown signature format":          {operation("SignData", sign+", SignatureFormat: JWS"), `3:67: profile "P": API.SignData.SignatureFormat: unknown value "JWS", expected one of "RAW", "DER", "PEM" or "CMS"`},
		"a tagged value":                       {"- Name: !secret P\n  API: {HashData: {HashAlg: sha-256}}\n", `1:9: Name: found a value tagged "!secret", expected text`},
		"a key that is a list":                 {"- Name: P\n  API: {HashData: {HashAlg: sha-256}, [a]: b}\n", `2:39: profile "P": API.line 2: found a list as a key, expected a name`},
		"no protocol of sessions":              {operation("Session", "KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM"), `3:5: profile "P": API.Session.Protocols: is missing, expected at least one of "session-v1", "session-v2", "session-hpke-p256" or "session-hpke-x-wing"`},
		"an unknown protocol of sessions":      {operation("Session", "Protocols: [session-v3], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM"), `3:27: profile "P": API.Session.Protocols[0]: unknown value "session-v3", expected one of "session-v1", "session-v2", "session-hpke-p256" or "session-hpke-x-wing"; did you mean "session-v1"?`},
		"a protocol of sessions twice":         {operation("Session", "Protocols: [session-v1, Session-V1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM"), `3:39: profile "P": API.Session.Protocols[1]: the protocol "session-v1" is already in the list`},
		"another key agreement":                {operation("Session", "Protocols: [session-v1], KeyAgreementAlg: X25519, EncryptAlg: A256GCM"), `3:57: profile "P": API.Session.KeyAgreementAlg: unknown value "X25519", expected "ECDH_P256"`},
		"no cipher of sessions":                {operation("Session", "Protocols: [session-v1], KeyAgreementAlg: ECDH_P256"), `3:5: profile "P": API.Session.EncryptAlg: is missing, expected "A256GCM"`},
		"a native protocol without a signature": {operation("Session", "Protocols: [session-hpke-p256], EncryptAlg: A256GCM"), `3:5: profile "P": API.Session.KeyIds: is missing, expected the key of the broker that signs its share of the key agreement` + "\n" +
			`Profiles.yaml:3:5: profile "P": API.Session.SignAlg: is missing, expected one of "rsa", "ecdsa", "rsa-pss", "ed25519", "ml-dsa-44", "ml-dsa-65" or "ml-dsa-87"`},
		"a key agreement of native protocols alone": {operation("Session", "Protocols: [session-hpke-p256], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: k}]"), `3:64: profile "P": API.Session.KeyAgreementAlg: found "ECDH_P256", expected none: the key agreement of session-hpke-p256 is fixed`},
		"no key agreement for version 1":            {operation("Session", "Protocols: [session-v1, session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: k}]"), `3:5: profile "P": API.Session.KeyAgreementAlg: is missing, expected "ECDH_P256"`},
		"a signature that nothing has":              {operation("Session", "Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, SignAlg: ed25519"), `3:98: profile "P": API.Session.SignAlg: has no effect, because no protocol in Protocols signs; leave it out, or add "session-hpke-p256"`},
		"two keys that sign sessions":               {operation("Session", "Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: k}, {Id: l}]"), `3:86: profile "P": API.Session.KeyIds: has 2 keys, expected only the key that signs`},
		"any key that signs sessions":               {operation("Session", "Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: \"*\"}]"), `3:100: profile "P": API.Session.KeyIds[0].Id: found "*", which stands for every key of the broker, expected only the key that signs`},
		"a digest that a signature does not take":   {operation("Session", "Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, HashAlg: sha-256, KeyIds: [{Id: k}]"), `3:95: profile "P": API.Session.HashAlg: found "sha-256", expected no HashAlg, since ed25519 fixes its own digest`},
		"native sessions in Redis":                  {operation("Session", "Protocols: [session-hpke-p256], EncryptAlg: A256GCM, SignAlg: ed25519, KeyIds: [{Id: k}], Store: redis"), `3:112: profile "P": API.Session.Store: found "redis", expected "memory": sessions of native protocols are in the memory of one broker`},
		"a store that there is not":                 {operation("Session", "Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, Store: disk"), `3:96: profile "P": API.Session.Store: unknown value "disk", expected one of "memory" or "redis"`},
		"a lifetime of a day":                       {operation("Session", "Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, MaxLifetime: 24h"), `3:102: profile "P": API.Session.MaxLifetime: found "24h", expected whole seconds from 1m0s to 1h0m0s`},
		"lifetimes in the wrong order":              {operation("Session", "Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, MinLifetime: 10m, MaxLifetime: 9m"), `3:120: profile "P": API.Session.MaxLifetime: is 9m0s, expected at least MinLifetime, which is 10m0s`},
		"a longest lifetime below the default":      {operation("Session", "Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, MaxLifetime: 2m"), `3:102: profile "P": API.Session.MaxLifetime: is 2m0s, expected at least MinLifetime, which is 5m0s`},
		"half a second as clock window":             {operation("Session", "Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, ClockWindow: 1500ms"), `3:102: profile "P": API.Session.ClockWindow: found "1500ms", expected whole seconds from 1s to 5m0s`},
		"no clock window":                           {operation("Session", "Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, ClockWindow: 0s"), `3:102: profile "P": API.Session.ClockWindow: found "0s", expected whole seconds from 1s to 5m0s`},
		"too many messages of a session":            {operation("Session", "Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, MaxMessages: 2000000000"), `3:102: profile "P": API.Session.MaxMessages: found 2000000000, expected 1 to 1073741824 messages in each direction, because NIST SP 800-38D allows 2^32 random IVs for a key`},
		"no messages of a session":                  {operation("Session", "Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, MaxMessages: 0"), `3:102: profile "P": API.Session.MaxMessages: found 0, expected 1 to 1073741824 messages in each direction, because NIST SP 800-38D allows 2^32 random IVs for a key`},
		"an alias that contains itself":             {"- &p\n  Name: P\n  API: *p\n", `2:3: profile "P": API.Name: unknown field "Name", expected "HashData", "SignCertificate", "EncryptData", "SignData", "DataKeys" or "Session"` + "\n" + `Profiles.yaml:3:3: profile "P": API.API: unknown field "API", expected "HashData", "SignCertificate", "EncryptData", "SignData", "DataKeys" or "Session"`},
		"a merge that contains itself":              {"- &p\n  Name: P\n  API: {HashData: {HashAlg: sha-256}}\n  <<: *p\n", `4:7: profile "P": <<: merges maps deeper than 32 levels`},
		"a merge of something else":                 {hash("  <<: text\n"), `5:7: profile "P": <<: found the text "text" in a merge key, expected a map`},
		"a map where a list is expected":            {certificate("      KeyUsage: {a: b}\n"), `7:17: profile "P": API.SignCertificate.KeyUsage: found a map, expected a list`},
		"a list where text is expected":             {"- Name: [P]\n  API: {HashData: {HashAlg: sha-256}}\n", `1:9: Name: found a list, expected text`},
		"a file above the limit":                    {strings.Repeat("#", profile.MaxFileSize+1), `1:1: the file has more than 1048576 bytes, and no file may have more`},
		"a profile in Windows line breaks":          {"- Name: P\r\n  API: {HashData: {HashAlg: md5}}\r\n", `2:29: profile "P": API.HashData.HashAlg: unknown value "md5", expected one of "sha-256", "sha-384", "sha-512", "sha-512/256", "sha3-256", "sha3-384", "sha3-512", "shake-128" or "shake-256"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			set, problems := profile.Compile(profile.FileName, []byte(test.file))
			if diff := cmp.Diff(profile.FileName+":"+test.want, problems.String()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if set != nil {
				t.Errorf("served %q despite the mistake", set.Names())
			}
		})
	}
}

// TestManyEmptyProfilesAreReadInTheTimeOfTheirNumber uses a file with which time that grows with the square of the number would
// be minutes.
func TestManyEmptyProfilesAreReadInTheTimeOfTheirNumber(t *testing.T) {
	const number = 40_000
	began := time.Now()
	_, problems := profile.Compile("p.yaml", []byte(strings.Repeat("- {}\n", number)))
	if want := fmt.Sprintf("and %d more problems", 2*number-1000); len(problems) != 1001 || !strings.HasPrefix(problems[1000].Message, want) { // no name and no operation
		t.Errorf("found %d problems, expected 1001, the last one %q", len(problems), want)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestATagMakesNoOtherTextABoolean(t *testing.T) {
	const file = "- Name: P\n  API: {HashData: {HashAlg: sha-256}}\n  Audit: {Level: all, Required: !!bool %s}\n"
	for text, want := range map[string]string{
		"yes": "found the boolean yes, expected true or false", "1": "found the boolean 1, expected true or false", "True": "",
	} {
		_, problems := profile.Compile("p.yaml", fmt.Appendf(nil, file, text))
		if got := problems.String(); !strings.HasSuffix(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: got %q, expected %q", text, got, want)
		}
	}
}

func TestAFileWithVeryManyProblemsListsSomeAndCountsTheOthers(t *testing.T) {
	const empty = 2000 // profiles, each with two problems
	set, problems := profile.Compile("Profiles.yaml", []byte(strings.Repeat("- {}\n", empty)+hash()))
	if len(problems) != 1001 || problems[1000].String() != "Profiles.yaml:501:3: and 3000 more problems, which are not listed" {
		t.Errorf("found %d problems, the last one %q", len(problems), problems[len(problems)-1])
	}
	if set == nil || set.Len() != 1 || set.Rejected() != empty {
		t.Errorf("found the set %+v, expected the valid profile and no other", set)
	}
	document := &profile.Document{Profiles: make([]profile.Profile, empty)}
	if _, problems = profile.CompileDocument(document); len(problems) != 1001 || problems[1000].String() != "and 3000 more problems, which are not listed" {
		t.Errorf("found %d problems of the document, the last one %q", len(problems), problems[len(problems)-1])
	}
}
