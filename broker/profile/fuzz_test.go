// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/fuzzmemory"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

const (
	// perValue is more than a value of a file may have allocated, in bytes: one that
	// is not right takes up to 5 KiB, for the sentence that says what would be.
	perValue = 8 << 10
	// mostValues is how many a file may have where it uses aliases.
	mostValues = 1 << 18
)

// values is how many values a file may have. Aliases make many of few bytes.
func values(data []byte) int {
	if bytes.Contains(data, []byte("*")) {
		return mostValues
	}
	return len(data)
}

// FuzzCompile holds what is true of every file: its memory is in proportion to its
// values, reading never fails in any way
// but by naming problems, a place is in the file, a set without problems has all
// profiles, and what was read without a problem renders and reads back the same.
func FuzzCompile(f *testing.F) {
	mistakes, err := os.ReadFile(filepath.Join("testdata", "ten-mistakes.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(mistakes)
	f.Add(catalogue.Profiles)
	f.Add([]byte(manyUnderALongName(20)))
	for _, seed := range []string{
		"", "[]", "{}", "Profiles: []", "- &a {Name: A, API: *a}", "- {<<: *a}", "- &a\n  <<: *a\n", "---\n---\n", "- ? [a]\n  : b\n", "&a [*a, *a]",
		"- Name: !!binary YQ==\n", "\xff\xfe-\x00", "- {Name: A, KMS: {Config: {a: .nan, b: 0o7, c: 0x1F, d: 1_000, e: 2025-01-01}}}", "%YAML 1.1\n---\n[]",
		"- Name: A\n  API: {SignCertificate: {KeyConstraints: {Subject: {RSA: {}}}}}\n", "- Name: |\n    A\n  API: >-\n    b\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var set *profile.Set
		var problems profile.Problems
		fuzzmemory.Check(t, values(data), perValue, func() { set, problems = profile.Compile(profile.FileName, data) })
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || p.Message == "" {
				t.Errorf("problem without a place or a message: %+v", p)
			}
		}
		if set == nil && len(problems) == 0 {
			t.Error("no set and no reason")
		}
		var doc *profile.Document
		var unreadable profile.Problems
		fuzzmemory.Check(t, values(data), perValue, func() { doc, unreadable = profile.Parse(profile.FileName, data) })
		if len(unreadable) > len(problems) {
			t.Errorf("Parse found %d problems, Compile %d", len(unreadable), len(problems))
		}
		if len(unreadable) > 0 {
			return
		}
		if set != nil && len(problems) == 0 && set.Len() != len(doc.Profiles) {
			t.Errorf("%d of %d profiles are served, and no problem says why", set.Len(), len(doc.Profiles))
		}
		assertRoundTrip(t, doc)
	})
}

// manyUnderALongName has a free-form list of n times n values below a name of 20
// kB, so that n lists are written and the others are aliases.
func manyUnderALongName(n int) string {
	name, value := strings.Repeat("k", 20_000), strings.Repeat("1, ", n)
	return "- Name: A\n  KMS:\n    Config:\n      ? " + name + "\n      : [&a [" + value + "]" + strings.Repeat(", *a", n-1) + "]\n"
}

func TestALongNameIsNotInThePathOfEveryValueBelowIt(t *testing.T) {
	data := []byte(manyUnderALongName(300))
	fuzzmemory.Check(t, 300*300, 1<<10, func() {
		if _, problems := profile.Parse(profile.FileName, data); len(problems) > 0 {
			t.Error(problems)
		}
	})
}

func TestThePathOfAProblemIsCutWhere(t *testing.T) {
	deep := strings.Repeat("{"+strings.Repeat("b", 30)+": ", 20) + "!!x 1" + strings.Repeat("}", 20)
	for sentence, c := range map[string]struct{ config, field string }{
		"a name is long":              {"{" + strings.Repeat("k", 65) + ": !!x 1}", "KMS.Config." + strings.Repeat("k", 64) + "…"},
		"a character would be cut":    {"{" + strings.Repeat("k", 63) + "ü: !!x 1}", "KMS.Config." + strings.Repeat("k", 63) + "…"},
		"a value is deep":             {deep, "KMS.Config" + strings.Repeat("."+strings.Repeat("b", 30), 8)},
		"nothing is, where all fits":  {"{" + strings.Repeat("k", 64) + ": [!!x 1]}", "KMS.Config." + strings.Repeat("k", 64) + "[0]"},
		"a list is in what is deeper": {strings.Replace(deep, "!!x 1", "[!!x 1]", 1), "KMS.Config" + strings.Repeat("."+strings.Repeat("b", 30), 8)},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, problems := profile.Parse(profile.FileName, []byte("- {Name: A, KMS: {Config: "+c.config+"}}\n"))
			if len(problems) != 1 || problems[0].Field != c.field {
				t.Errorf("%v, want one problem of %s", problems, c.field)
			}
		})
	}
}
