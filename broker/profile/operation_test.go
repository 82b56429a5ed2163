// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"reflect"
	"slices"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/internal/yamlfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
)

// offering returns a profile with one section of each kind.
func offering(t *testing.T) *Profile {
	t.Helper()
	doc, problems := Parse(FileName, []byte(`
- Name: P
  API:
    HashData: {HashAlg: sha-256}
    SignCertificate:
      SignAlg: ecdsa
      HashAlg: sha-256
      Validity: {ValidNotBeforeOffset: -1h, ValidNotAfterOffset: 1h}
      KeyConstraints: {Subject: {RSA: {MinKeySize: 2048, MaxKeySize: 4096}}, Issuer: {ECDSA: {MinKeySize: 256, MaxKeySize: 521}}}
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}
    SignData: {SignAlg: ecdsa, HashAlg: sha-256}
    DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: k}]}
    Session: {Protocols: [session-v1], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM}
`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return &doc.Profiles[0]
}

func TestTheTableOfOperationsHasARowForEachFieldOfAPI(t *testing.T) {
	var names []string
	for _, row := range sections {
		names = append(names, row.Name)
	}
	if fields := yamlfile.FieldNames(reflect.TypeFor[API]()); !slices.Equal(names, fields) {
		t.Errorf("rows %q, fields %q", names, fields)
	}
}

func TestEachOperationHasItsPlaceInTheTable(t *testing.T) {
	var all []Operation
	for _, row := range sections {
		for _, operation := range row.Operations {
			all = append(all, operation.Operation)
		}
	}
	for i := range OperationCount {
		if op := Operation(i); i >= len(all) || all[i] != op || op.Row().Operation != op || op.String() == "" {
			t.Errorf("operation %d, %q, has the row %+v; the rows have the operations %v", i, op, op.Row(), all)
		}
	}
}

func TestNoRowOfTheTableOfOperationsHasABlankCell(t *testing.T) {
	p := offering(t)
	seen := map[string]bool{}
	for _, row := range sections {
		if row.of == nil || row.policy == nil || row.primitives == nil || row.objection == nil || len(row.Operations) == 0 || len(row.Refusals) == 0 {
			t.Errorf("%s has a blank cell", row.Name)
			continue
		}
		if row.Offered(&API{}) {
			t.Errorf("%s is offered by a profile without it", row.Name)
		}
		s := row.of(&p.API)
		if s == nil {
			t.Errorf("%s is not found in a profile that has it", row.Name)
			continue
		}
		if s.format() == 0 {
			t.Errorf("%s has no version of the format", row.Name)
		}
		judgements := s.judge()
		if len(judgements) != len(row.Operations) {
			t.Errorf("%s has %d judgements for the operations %q", row.Name, len(judgements), row.Names())
			continue
		}
		for i, operation := range row.Names() {
			if len(row.Operations[i].Functions) == 0 {
				t.Errorf("%s has no function of CycloneDX", operation)
			}
			if seen[operation] || Section(operation) != "API."+row.Name {
				t.Errorf("%s is in the table twice", operation)
			}
			seen[operation] = true
			if judgements[i].algorithm == "" || judgements[i].strength(operation).Bits == 0 || judgements[i].strength(operation).Limit == "" {
				t.Errorf("%s has no algorithm or strength: %+v", operation, judgements[i])
			}
		}
		var c, none Compiled
		if s.compile(&c, compileOptions{}); reflect.DeepEqual(c, none) {
			t.Errorf("%s compiles to nothing", row.Name)
		}
		c.assess(p, compileOptions{})
		for _, operation := range row.Operations {
			if keys, offered := c.Keys(operation.Operation); offered != (operation.KeyTasks != 0) || offered && keys != row.policy(&c).Keys() {
				t.Errorf("%s has the keys %v, offered %t", operation.Name, keys, offered)
			}
			for _, u := range row.policy(&c).extremes(operation.Operation) {
				if effect, why := c.Effect(u); u.Operation != operation.Operation || effect != "" {
					t.Errorf("%s: an extreme of the profile, %+v, is %q under it: %s", operation.Name, u, effect, why)
				}
			}
		}
	}
}

func TestTheVerdictAndTheFormatOfADigestAreThoseOfItsRow(t *testing.T) {
	for _, name := range algorithm.Digests(algorithm.ForData | algorithm.ForKeyIdentifiers) {
		digest, _ := algorithm.FindDigest(name)
		approved := digest.Approval() == algorithm.Approved
		p := &Profile{Name: "P", API: API{HashData: &HashData{HashAlg: name}}}
		verdict := FIPSVerdicts(p)[0]
		if verdict.Approved() != approved {
			t.Errorf("HashData with %s: %q, its row says approved %t", name, verdict.Reason, approved)
		}
		if got, want := p.FormatVersion(), algorithm.DigestFormat(name).Version(); got != want {
			t.Errorf("HashData with %s needs version %d, its row says %d", name, got, want)
		}
	}
}

func TestAProfileWithAnUnknownAlgorithmNeedsTheNewestFormat(t *testing.T) {
	for sentence, change := range map[string]func(*API){
		"a digest":                   func(a *API) { a.HashData.HashAlg = "sha-4" },
		"a digest of certificates":   func(a *API) { a.SignCertificate.HashAlg = "sha-4" },
		"a digest of key ids":        func(a *API) { a.SignCertificate.SKIHashAlg = "sha-4" },
		"a cipher":                   func(a *API) { a.EncryptData.EncryptAlg = "rot13" },
		"a digest of signatures":     func(a *API) { a.SignData.HashAlg = "sha-4" },
		"a wrapping algorithm":       func(a *API) { a.DataKeys.WrapAlgs[0] = "rot13" },
		"a protocol of sessions":     func(a *API) { a.Session.Protocols[0] = "session-v9" },
		"a signature":                func(a *API) { a.SignData.SignAlg = "rot13" },
		"a signature of certificate": func(a *API) { a.SignCertificate.SignAlg = "rot13" },
		"a key":                      func(a *API) { a.SignCertificate.KeyConstraints.Subject["rot13"] = keyrules.Size{} },
	} {
		t.Run(sentence, func(t *testing.T) {
			p := offering(t)
			if version := p.FormatVersion(); version == newestFormatVersion {
				t.Fatalf("the profile needs version %d before", version)
			}
			if change(&p.API); p.FormatVersion() != newestFormatVersion {
				t.Errorf("needs version %d", p.FormatVersion())
			}
		})
	}
}
