// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// maxShown is the maximum number of failures of a row that the report shows in full.
const maxShown = 10

// count has the results of the vectors of a row.
type count struct {
	ran, passed, failed int
	exempted            int // passed except for exempted findings; not in passed
	findings            map[finding]int
	refused, leftOut    map[string]int // by reason
	failures            []string       // the first ones
}

// results has the results of all vectors.
type results struct {
	plan   *plan
	rows   map[row]*count
	broker string // its version
	took   time.Duration
}

func newResults(p *plan) *results {
	r := &results{plan: p, rows: map[row]*count{}}
	for at, reasons := range p.leftOut {
		r.at(at).leftOut = reasons
	}
	return r
}

func (r *results) at(at row) *count {
	if r.rows[at] == nil {
		r.rows[at] = &count{refused: map[string]int{}, findings: map[finding]int{}}
	}
	return r.rows[at]
}

func (r *results) count(v vector, verdict verdict) {
	c := r.at(v.row)
	c.ran++
	switch {
	case verdict.failed != "":
		c.failed++
		if len(c.failures) < maxShown {
			c.failures = append(c.failures, v.name+": "+verdict.failed)
		}
	case verdict.refused != "":
		c.refused[verdict.refused]++
	case len(verdict.exempted) > 0:
		c.exempted++
		for _, f := range verdict.exempted {
			c.findings[f]++
		}
	default:
		c.passed++
	}
}

func (r *results) sorted() []row {
	return slices.SortedFunc(maps.Keys(r.rows), func(a, b row) int {
		return cmp.Or(
			slices.Index(operations, a.operation)-slices.Index(operations, b.operation),
			strings.Compare(a.algorithm, b.algorithm),
			strings.Compare(a.source, b.source))
	})
}

// operations are the operations in the order of the documentation.
var operations = []string{
	"HashData", "SignCertificate", "EncryptData", "DecryptData", "SignData", "VerifyData",
	"EncryptStream", "DecryptStream", wrapping, unwrapping, deriving, encryptingStreams, decryptingStreams,
}

func (r *results) sum() (total count) {
	for _, c := range r.rows {
		total.ran, total.passed, total.failed = total.ran+c.ran, total.passed+c.passed, total.failed+c.failed
		total.exempted += c.exempted
	}
	return total
}

func (r *results) failures() int { return r.sum().failed + len(r.uncertified()) }

// uncertified returns the profiles without any certificate that passed, because they were
// not tested.
func (r *results) uncertified() []string {
	var none []string
	for at, c := range r.rows {
		if at.operation == "SignCertificate" && c.passed+c.exempted == 0 {
			none = append(none, at.algorithm)
		}
	}
	slices.Sort(none)
	return none
}

func sumOf(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// reasons adds up the counts of the rows by reason.
func (r *results) reasons(of func(*count) map[string]int) map[string]int {
	total := map[string]int{}
	for _, c := range r.rows {
		for reason, n := range of(c) {
			total[reason] += n
		}
	}
	return total
}

// reasonOf is a reason why vectors of a row were refused or left out.
type reasonOf struct {
	row
	vectors int
	reason  string
}

// byRow lists the reasons of each row, in the order of rows.
func (r *results) byRow(of func(*count) map[string]int) (list []reasonOf) {
	for _, at := range r.sorted() {
		counts := of(r.rows[at])
		for _, reason := range slices.Sorted(maps.Keys(counts)) {
			list = append(list, reasonOf{at, counts[reason], reason})
		}
	}
	return list
}

// exemptedOf is an exempted finding that certificates of a profile have.
type exemptedOf struct {
	row
	finding
	certificates int
}

// exempted lists the exempted findings of each profile.
func (r *results) exempted() (list []exemptedOf) {
	for _, at := range r.sorted() {
		findings := r.rows[at].findings
		byRule := func(a, b finding) int { return strings.Compare(a.rule, b.rule) }
		for _, f := range slices.SortedFunc(maps.Keys(findings), byRule) {
			list = append(list, exemptedOf{at, f, findings[f]})
		}
	}
	return list
}

func refusedOf(c *count) map[string]int { return c.refused }
func leftOutOf(c *count) map[string]int { return c.leftOut }

// print writes the results for people to read.
func (r *results) print(to io.Writer) {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "operation\talgorithm or profile\tvectors of\tran\tpassed\tpassed with an exempted finding\trefused on purpose\tfailed\tleft out")
	for _, at := range r.sorted() {
		c := r.rows[at]
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", at.operation, at.algorithm, at.source, c.ran, c.passed, c.exempted, sumOf(c.refused), c.failed, sumOf(c.leftOut))
	}
	_ = table.Flush() // the writer below it is the program's output
	for _, part := range []struct {
		title string
		of    func(*count) map[string]int
	}{{"refused on purpose", refusedOf}, {"left out", leftOutOf}} {
		fmt.Fprintf(table, "\noperation\talgorithm or profile\tvectors of\t%s\tbecause of\n", part.title)
		for _, line := range r.byRow(part.of) {
			fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", line.operation, line.algorithm, line.source, line.vectors, line.reason)
		}
		_ = table.Flush()
	}
	fmt.Fprintln(table, "\nprofile\tcertificates\tlevel\texempted finding")
	for _, e := range r.exempted() {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", e.algorithm, e.certificates, e.level, e.rule)
	}
	_ = table.Flush()
	fmt.Fprintln(to)
	for _, at := range r.sorted() {
		for _, failure := range r.rows[at].failures {
			fmt.Fprintf(to, "FAILED %s %s, %s: %s\n", at.operation, at.algorithm, at.source, failure)
		}
	}
	for _, profile := range r.uncertified() {
		fmt.Fprintf(to, "FAILED SignCertificate %s: made no certificate\n", profile)
	}
	total := r.sum()
	fmt.Fprintf(to, "%d vectors in %s: %d passed, %d passed with an exempted finding, %d refused on purpose, %d failed\n", total.ran, r.took.Round(time.Second),
		total.passed, total.exempted, sumOf(r.reasons(refusedOf)), r.failures())
}
