// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

// inOrder and inAnyOrder say whether the order of problems matters. The YAML library has its own order for names with other
// characters than letters and digits.
var (
	inOrder    = cmp.Options{}
	inAnyOrder = cmpopts.SortSlices(func(a, b profile.Problem) bool {
		return a.Field+a.Profile+a.Message < b.Field+b.Profile+b.Message
	})
)

// assertJudgedAlike checks that a document and the file that Marshal makes of it give the same profiles, and the same problems and
// warnings in the same order.
func assertJudgedAlike(t *testing.T, doc *profile.Document, order cmp.Option, options ...profile.CompileOption) {
	t.Helper()
	written, err := profile.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	fromFile, inFile := profile.Compile(profile.FileName, written, options...)
	fromDocument, inDocument := profile.CompileDocument(doc, options...)
	placeless := cmpopts.IgnoreFields(profile.Problem{}, "File", "Line", "Column")
	said := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Message" },
		cmp.Comparer(func(a, b string) bool { return strings.Contains(a, "is taken by the profile") || a == b }))
	if diff := cmp.Diff(inFile, inDocument, placeless, said, order, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("problems of the file and of the document (-file +document):\n%s", diff)
	}
	for _, problem := range inDocument {
		if problem.Line != 0 || problem.Column != 0 {
			t.Errorf("%s has line %d of no file", problem, problem.Line)
		}
	}
	if (fromFile == nil) != (fromDocument == nil) {
		t.Fatalf("a set of the file: %t, of the document: %t", fromFile != nil, fromDocument != nil)
	}
	fromWritten, inWritten := profile.CompileWritten(doc, written, options...)
	if diff := cmp.Diff(inDocument, inWritten); diff != "" {
		t.Errorf("problems of the document alone and with its file (-alone +with):\n%s", diff)
	}
	if fromFile == nil {
		return
	}
	if fromWritten.Digest() != fromFile.Digest() || fromDocument.Digest() != "" {
		t.Errorf("digests %q with the file, %q without it, want %q and none", fromWritten.Digest(), fromDocument.Digest(), fromFile.Digest())
	}
	if diff := cmp.Diff(fromFile.Names(), fromDocument.Names(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("profiles (-file +document):\n%s", diff)
	}
	if diff := cmp.Diff(fromFile.Warnings(), fromDocument.Warnings(), placeless, order, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("warnings (-file +document):\n%s", diff)
	}
	for _, name := range fromFile.Names() {
		a, _ := fromFile.Lookup(name)
		b, _ := fromDocument.Lookup(name)
		if diff := cmp.Diff(a.Assessments(), b.Assessments()); diff != "" {
			t.Errorf("assessments of %s (-file +document):\n%s", name, diff)
		}
	}
}

func TestADocumentIsJudgedAsItsFile(t *testing.T) {
	mistakes, err := os.ReadFile(filepath.Join("testdata", "ten-mistakes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for sentence, file := range map[string]string{
		"the catalogue":               string(catalogue.Profiles),
		"a file with ten mistakes":    string(mistakes),
		"an empty list":               "[]",
		"a profile without a name":    "- API: {HashData: {HashAlg: sha-256}}\n",
		"a profile without operation": "- Name: P\n  API: {}\n",
		"two profiles of a name":      "- Name: P\n  API: {HashData: {HashAlg: sha-256}}\n- Name: P\n  API: {HashData: {HashAlg: sha-256}}\n",
		"sections with nothing":       "- Name: P\n  API: {HashData: {}, SignCertificate: {}, EncryptData: {}, SignData: {}, DataKeys: {}, Session: {}}\n  Callers: {}\n  Audit: {}\n  Deprecation: {}\n",
		"patterns with nothing":       "- Name: P\n  API: {SignCertificate: {SubjectAltNames: {Rule: patterns}, CRLDistributionPoints: {Rule: patterns}, KeyIds: [{}, {Id: \"*\"}]}}\n",
		"a key manager":               "- Name: P\n  KMS: {Client: vault, Config: {a: 1, b: [x, {c: 1.5}], d: true}}\n  API: {SignData: {SignAlg: ed25519, KeyIds: [{Id: k}]}}\n",
		"a released key manager":      "- Name: P\n  KMS: {Client: openbao, Config: openbao.yaml, Cache: false}\n  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}}\n",
		"a file name that is a path":  "- Name: P\n  KMS: {Client: openbao, Config: /etc/shadow, Cache: {a: 1}}\n  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256}}\n",
		"settings of the file":        "Settings: {CryptoLibrary: other}\nKMS: {Client: \"\\u0001\"}\nProfiles:\n- Name: P\n  API: {HashData: {HashAlg: sha-256}}\n",
	} {
		t.Run(sentence, func(t *testing.T) {
			doc, _ := profile.Parse(profile.FileName, []byte(file))
			assertJudgedAlike(t, doc, inOrder)
			assertJudgedAlike(t, doc, inOrder, profile.RequireFIPS())
		})
	}
}

// config is a document whose key manager has this configuration.
func config(value any) *profile.Document {
	return &profile.Document{Profiles: []profile.Profile{{
		Name: "P",
		KMS:  &profile.KMS{Client: "vault", Config: map[string]any{"a": value}},
		API:  profile.API{HashData: &profile.HashData{HashAlg: "sha-256"}},
	}}}
}

// many is a list of whole numbers.
func many(count int) []any {
	list := make([]any, count)
	for i := range list {
		list[i] = i
	}
	return list
}

func nested(depth int) any {
	var value any = "end"
	for range depth {
		value = []any{value}
	}
	return value
}

func TestADocumentThatNoFileCanHoldIsRefused(t *testing.T) {
	for sentence, test := range map[string]struct {
		value any
		want  string
	}{
		"nothing where a value is due": {map[string]any{"b": nil}, "KMS.Config.a.b: has no value"},
		"a number that is infinite":    {math.Inf(1), "KMS.Config.a: found a value of a kind"},
		"a value of another kind":      {struct{}{}, "KMS.Config.a: found a value of a kind"},
		"text that is not UTF-8":       {"\xff", "KMS.Config.a: found text that is not UTF-8"},
		"values that nest too deep":    {nested(40), "nests deeper than 32 levels"},
		"too many values":              {many(1 << 18), "holds more than"},
		"too much text":                {strings.Repeat("a", profile.MaxFileSize), "the file has more than 1048576 bytes"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, problems := profile.CompileDocument(config(test.value))
			if len(problems) != 1 || !strings.Contains(problems[0].String(), test.want) {
				t.Errorf("found %q, want one problem with %q", problems, test.want)
			}
		})
	}
	for sentence, value := range map[string]any{"much text": strings.Repeat("a", 1<<19), "deep values": nested(20), "many values": many(1 << 17)} {
		t.Run(sentence+" is fine", func(t *testing.T) { assertJudgedAlike(t, config(value), inOrder) })
	}
}

func BenchmarkCompile(b *testing.B) {
	doc, _ := profile.Parse(profile.FileName, catalogue.Profiles)
	b.Run("by way of a file", func(b *testing.B) {
		for b.Loop() {
			data, _ := profile.Marshal(doc)
			profile.Compile(profile.FileName, data)
		}
	})
	b.Run("of a document", func(b *testing.B) {
		for b.Loop() {
			profile.CompileDocument(doc)
		}
	})
}
