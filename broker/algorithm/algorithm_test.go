// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"crypto"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// blank returns the fields of a row that are not filled in.
func blank(row any) []string {
	var names []string
	value := reflect.ValueOf(row)
	for i := range value.NumField() {
		field := value.Field(i)
		// An empty map counts as an answer, but an empty list does not.
		if field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0 {
			names = append(names, value.Type().Field(i).Name)
		}
	}
	return names
}

func TestNoRowHasABlankCell(t *testing.T) {
	rows := map[string]any{}
	for i, row := range digests[1:] {
		if row.uses&ForSignatures == 0 && row.hash == 0 {
			row.hash = crypto.Hash(1) // digests that signatures do not use have no constant
		}
		rows["digest "+Digest(i+1).String()] = row
	}
	for _, row := range keys {
		rows["key "+row.Name] = row
	}
	for i, row := range signatures[1:] {
		rows["signature "+Signature(i+1).String()] = row
	}
	for i, row := range ciphers[1:] {
		rows["cipher "+Cipher(i+1).String()] = row
	}
	for i, row := range streams[1:] {
		rows["stream "+Stream(i+1).String()] = row
	}
	for i, row := range sessions[1:] {
		rows["session "+Session(i+1).String()] = row
	}
	for i, row := range wrappings[1:] {
		if row.key != RSAWrappingKey {
			row.hash = crypto.Hash(1) // other algorithms have no digest
		}
		rows["wrapping "+Wrapping(i+1).String()] = row
	}
	for _, row := range primitives {
		rows["primitive "+row.family] = row
	}
	for name, row := range rows {
		if fields := blank(row); len(fields) > 0 {
			t.Errorf("%s has no %s", name, strings.Join(fields, ", "))
		}
	}
}

func TestABlankCellIsNoticed(t *testing.T) {
	row := digests[SHA256]
	row.strength, row.approval = 0, 0
	if got := strings.Join(blank(row), " "); got != "strength approval" {
		t.Errorf("found %q", got)
	}
}

func TestEachRowHoldsTogether(t *testing.T) {
	for d := range digests[1:] {
		digest := Digest(d + 1)
		want := digest.AppendSum(nil, []byte("message"))
		running := digest.Start()
		for _, part := range []string{"mess", "age"} {
			if _, err := running.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if got := running.Sum(nil); string(got) != string(want) || len(got) != digests[digest].size {
			t.Errorf("%s in parts is %x, whole %x, of %d bytes", digest, got, want, digests[digest].size)
		}
		if digest.Hash() != 0 && digest.Hash().Size() != digests[digest].size {
			t.Errorf("%s has the hash %s", digest, digest.Hash())
		}
		if found, _ := FindDigest(strings.ToUpper(digest.String())); found != digest {
			t.Errorf("%s is found as %s", digest, found)
		}
	}
	for i := range signatures[1:] {
		signature := Signature(i + 1)
		if _, known := FindKey(signatures[signature].key); !known {
			t.Errorf("%s has keys %q, which are in no row", signature, signatures[signature].key)
		}
		for digest := range signatures[signature].certificates {
			if signature.TakesDigest() != (digests[digest].uses&ForCertificates != 0) {
				t.Errorf("%s has a certificate with the digest %s", signature, digest)
			}
		}
	}
	for i := range wrappings[1:] {
		wrapping := Wrapping(i + 1)
		if found, _ := FindWrapping(strings.ToUpper(wrapping.String())); found != wrapping {
			t.Errorf("%s is found as %s", wrapping, found)
		}
		for _, size := range wrapping.KeySizes() {
			if bits, limit := wrapping.Strength(size); bits < 112 || limit == "" {
				t.Errorf("%s has a strength of %d bits with %q", wrapping, bits, limit)
			}
		}
	}
	for i := range sessions[1:] {
		session := Session(i + 1)
		if found, _ := FindSession(strings.ToUpper(session.String())); found != session {
			t.Errorf("%s is found as %s", session, found)
		}
	}
	for _, key := range keys {
		for i, row := range key.strengths {
			if i > 0 && (row.size >= key.strengths[i-1].size || row.strength >= key.strengths[i-1].strength) {
				t.Errorf("the strengths of %s are not in order at %d bits", key.Name, row.size)
			}
		}
	}
}

func TestWhatHasNoVerdictIsNotApproved(t *testing.T) {
	if Approval(0).Objection() == "" || NotApproved.Objection() == "" || NotInModule.Objection() == "" {
		t.Error("an objection is missing")
	}
	if Approved.Objection() != "" {
		t.Error("what is approved has an objection")
	}
}

func TestANameThatIsUnknownNeedsTheNewestFormat(t *testing.T) {
	for sentence, test := range map[string]struct{ found, want Format }{
		"an unknown digest":             {DigestFormat("sha-4"), newest},
		"an unknown signature":          {SignatureFormat("rot13"), newest},
		"a hybrid with an unknown part": {SignatureFormat("rsa+rot13"), newest},
		"an unknown key":                {KeyFormat("rsa"), newest},
		"an unknown cipher":             {CipherFormat("rot13"), newest},
		"an unknown wrapping":           {WrappingFormat("rot13"), newest},
		"an unknown session":            {SessionFormat("session-v9"), newest},
		"no name at all":                {max(DigestFormat(""), SignatureFormat(""), CipherFormat(""), WrappingFormat(""), SessionFormat("")), Format0},
		"a released digest":             {DigestFormat("SHA-256"), Format0},
		"a released signature":          {SignatureFormat("RSA"), Format0},
		"a later signature":             {SignatureFormat("rsa-pss"), Format1},
		"a hybrid":                      {SignatureFormat("ecdsa+ml-dsa-44"), Format1},
	} {
		t.Run(sentence, func(t *testing.T) {
			if test.found != test.want {
				t.Errorf("found version %d, want %d", test.found.Version(), test.want.Version())
			}
		})
	}
}

// Stored wrapped keys contain these numbers.
func TestTheNumbersOfWrappingAlgorithmsNeverChange(t *testing.T) {
	want := "aes-kw aes-kwp aes-gcm rsa-oaep-sha-1 rsa-oaep-sha-256 rsa-oaep-sha-384 rsa-oaep-sha-512 " +
		"hpke-p-256 hpke-p-384 hpke-p-521 hpke-ml-kem-768 hpke-ml-kem-1024 hpke-mlkem768-x25519"
	if got := strings.Join(Wrappings(), " "); got != want {
		t.Errorf("from number 1 on, found %s, want %s", got, want)
	}
	if Wrapping(0).IsKnown() || Wrapping(len(wrappings)).IsKnown() {
		t.Error("a number without an algorithm is known")
	}
}

// TestTheDocumentationNamesEachAlgorithm reads docs/profiles.md, docs/formats.md and the pages of
// the operations.
func TestTheDocumentationNamesEachAlgorithm(t *testing.T) {
	pages, err := filepath.Glob("../../docs/operations/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("found %d pages of operations: %v", len(pages), err)
	}
	var text strings.Builder
	for _, page := range append(pages, "../../docs/profiles.md", "../../docs/formats.md") {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(content)
	}
	names := slices.Concat(Digests(ForData), Digests(ForSignatures), Digests(ForCertificates), Digests(ForKeyIdentifiers),
		Signatures(Classical), Signatures(PostQuantum), Ciphers(), Wrappings(), Streams(), Sessions())
	for _, name := range names {
		if !strings.Contains(text.String(), name) {
			t.Errorf("no page names the algorithm %q, expected docs/profiles.md or docs/formats.md to do so", name)
		}
	}
}
