// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zmap/zlint/v3/lint"
)

// table returns the lines of the first table below a line of the document, its
// head without the rule below it.
func table(t *testing.T, document, below string) []string {
	t.Helper()
	_, rest, found := strings.Cut(document, below+"\n")
	start := strings.Index(rest, "\n| ")
	if !found || start < 0 {
		t.Fatalf("no table below %q in\n%s", below, document)
	}
	lines, _, _ := strings.Cut(rest[start+1:], "\n\n")
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(lines), "\n"), func(line string) bool { return strings.HasPrefix(line, "|---") })
}

func wantLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// twoReasons has one operation with two algorithms that share a reason.
func twoReasons() *results {
	p := newPlan(true)
	short, long := row{"EncryptData", "aes-gcm-128", "NIST CAVS"}, row{"EncryptData", "aes-gcm-256", "Wycheproof"}
	p.leave(long, "no field")
	r := newResults(p)
	for at, verdicts := range map[row][]verdict{
		short: {passed(), passed(), refused("a short tag"), refused("a long nonce"), refused("a short tag")},
		long:  {refused("a long nonce"), failed("the tag is 00")},
		{"DecryptData", "aes-gcm-128", "NIST CAVS"}: {passed()},
	} {
		for _, verdict := range verdicts {
			r.count(vector{row: at, name: "a vector"}, verdict)
		}
	}
	return r
}

func TestTheDocumentHasTheReasonsOfEachOperationAndAlgorithm(t *testing.T) {
	document := string(twoReasons().document(time.Time{}, "a machine"))
	wantLines(t, "all results", table(t, document, "## By operation and algorithm"), []string{
		"| operation | algorithm | vectors of | ran | passed | passed with an exempted finding | refused | failed | left out |",
		"| EncryptData | aes-gcm-128 | NIST CAVS | 5 | 2 | 0 | 3 | 0 | 0 |",
		"| EncryptData | aes-gcm-256 | Wycheproof | 2 | 0 | 0 | 1 | 1 | 1 |",
		"| DecryptData | aes-gcm-128 | NIST CAVS | 1 | 1 | 0 | 0 | 0 | 0 |",
	})
	wantLines(t, "reasons of all", table(t, document, "## Refused on purpose"), []string{
		"| vectors | because of |",
		"| 2 | a long nonce |",
		"| 2 | a short tag |",
	})
	wantLines(t, "reasons of each", table(t, document, "The same by operation and algorithm, where any were refused:"), []string{
		"| operation | algorithm | vectors of | refused | because of |",
		"| EncryptData | aes-gcm-128 | NIST CAVS | 1 | a long nonce |",
		"| EncryptData | aes-gcm-128 | NIST CAVS | 2 | a short tag |",
		"| EncryptData | aes-gcm-256 | Wycheproof | 1 | a long nonce |",
	})
	wantLines(t, "left out", table(t, document, "## Left out"), []string{
		"| operation | algorithm | vectors of | left out | because of |",
		"| EncryptData | aes-gcm-256 | Wycheproof | 1 | no field |",
	})
}

func TestTheReasonsOfEachOperationAndAlgorithmArePrinted(t *testing.T) {
	var printed bytes.Buffer
	twoReasons().print(&printed)
	var lines []string
	for line := range strings.Lines(printed.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"EncryptData aes-gcm-128 NIST CAVS 1 a long nonce",
		"EncryptData aes-gcm-128 NIST CAVS 2 a short tag",
		"EncryptData aes-gcm-256 Wycheproof 1 a long nonce",
		"EncryptData aes-gcm-256 Wycheproof 1 no field",
		"FAILED EncryptData aes-gcm-256, Wycheproof: a vector: the tag is 00",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, printed.String())
		}
	}
}

func TestACertificateWithAnExemptedFindingIsNotCountedAsPassed(t *testing.T) {
	r := newResults(newPlan(true))
	issued := row{"SignCertificate", "Default", fromCertificates}
	first, second := finding{ofTheCatalogue[0].rule, lint.Error}, finding{ofTheCatalogue[1].rule, lint.Warn}
	for _, findings := range [][]finding{{first, second}, {second}, nil} {
		r.count(vector{row: issued}, verdict{exempted: findings})
	}
	var printed bytes.Buffer
	r.print(&printed)
	document := string(r.document(time.Time{}, "a machine"))
	for _, sum := range []struct{ text, want string }{
		{printed.String(), "3 vectors in 0s: 1 passed, 2 passed with an exempted finding, 0 refused on purpose, 0 failed"},
		{document, "**1 passed, 2 passed with an exempted finding of the linter"},
	} {
		if !strings.Contains(sum.text, sum.want) {
			t.Errorf("no %q in\n%s", sum.want, sum.text)
		}
	}
	wantLines(t, "results", table(t, document, "## By operation and algorithm")[1:], []string{
		"| SignCertificate | Default | zlint and OpenSSL | 3 | 1 | 2 | 0 | 0 | 0 |",
	})
	wantLines(t, "rules", table(t, document, "## Certificates"), []string{
		"| exempted rule of zlint | why |",
		"| " + ofTheCatalogue[0].rule + " | " + ofTheCatalogue[0].because + " |",
		"| " + ofTheCatalogue[1].rule + " | " + ofTheCatalogue[1].because + " |",
	})
	wantLines(t, "findings", table(t, document, "| "+ofTheCatalogue[1].rule+" | "+ofTheCatalogue[1].because+" |"), []string{
		"| profile | certificates | level | exempted finding |",
		"| Default | 1 | error | e_ecdsa_allowed_ku |",
		"| Default | 2 | warn | e_key_usage_and_extended_key_usage_inconsistent |",
	})
}
