// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/memory"
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
		memory.Check(t, values(data), perValue, func() { set, problems = profile.Compile(profile.FileName, data) })
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
		memory.Check(t, values(data), perValue, func() { doc, unreadable = profile.Parse(profile.FileName, data) })
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
