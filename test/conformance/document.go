// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// document renders the results as docs/reports/conformance.md.
func (r *results) document(now time.Time, machine string) []byte {
	var d bytes.Buffer
	total := r.sum()
	fmt.Fprintf(&d, `# Conformance

Test vectors that others published, sent through the socket to the broker as images have it: a client with an encoding of the
protocol of its own, and a broker in a process of its own. What the broker refuses on purpose has to be refused with the code
INVALID_ARGUMENT and the sentence that says why (FAILED_PRECONDITION where a profile with such a value was not loaded), or, where
a signature only has other parameters than profiles have, to be called not valid. Every other difference is a failure. This page
is what the command wrote:

`+"```sh\nmake conformance\n```"+`

%s vectors in %s: **%s passed, %s passed with an exempted finding of the linter (see
[certificates](#certificates)), %s refused on purpose, %d failed.** On %s, %s; broker: %s.

| vectors | version | what of them |
|---|---|---|
`, measurement.Thousands(total.ran), r.took.Round(time.Second), measurement.Thousands(total.passed), measurement.Thousands(total.exempted), measurement.Thousands(sumOf(r.reasons(refusedOf))), r.failures(), machine, now.UTC().Format("2 January 2006"), r.broker)
	for _, s := range r.plan.sources {
		fmt.Fprintf(&d, "| %s | %s | %s |\n", s.name, s.version, s.about)
	}
	d.WriteString(`
` + "`make test`" + ` runs a part of it: all of the smaller sets, one of every few of the larger ones.

## By operation and algorithm

A vector of HashData passes if both generations of the protocol give the digest, in hexadecimal and raw. Where SHAKE has
another length than profiles have, the part that both have is compared. A Monte Carlo vector is a chain of 1000 digests.
A signature of ML-DSA is never the same twice, so a vector of SignData passes if what was signed with the published seed
verifies under the published public key. With CIRCL it is the other way round, too: each implementation verifies what the
other signed, with keys that both derive from one seed.

Vectors of EncryptStream and DecryptStream have data keys that Tink wraps and unwraps, under a key that the broker has in its directory, too.

The other vectors that wrap keys or encrypt streams call the packages of the broker, because operations choose data keys and nonces themselves. They run with the
cryptographic module that images have. CIRCL has HPKE for elliptic curves and MLKEM768-X25519. For ML-KEM alone its ML-KEM is combined with a key
schedule that was written for this test from RFC 9180. With CIRCL and Tink each implementation reads what the other wrote.

| operation | algorithm | vectors of | ran | passed | passed with an exempted finding | refused | failed | left out |
|---|---|---|---|---|---|---|---|---|
`)
	for _, at := range r.sorted() {
		c := r.rows[at]
		fmt.Fprintf(&d, "| %s | %s | %s | %d | %d | %d | %d | %d | %d |\n", at.operation, at.algorithm, at.source, c.ran, c.passed, c.exempted, sumOf(c.refused), c.failed, sumOf(c.leftOut))
	}
	d.WriteString("\n## Refused on purpose\n\n| vectors | because of |\n|---|---|\n")
	writeReasons(&d, r.reasons(refusedOf))
	d.WriteString("\nThe same by operation and algorithm, where any were refused:\n\n| operation | algorithm | vectors of | refused | because of |\n|---|---|---|---|---|\n")
	writeByRow(&d, r.byRow(refusedOf))
	d.WriteString("\n## Left out\n\nThese vectors cannot be sent: no field of the protocol has what they are about.\n\n| operation | algorithm | vectors of | left out | because of |\n|---|---|---|---|---|\n")
	writeByRow(&d, r.byRow(leftOutOf))
	d.WriteString(`
## Certificates

For SignCertificate the rows are profiles: the profiles of the catalogue, and some with what the catalogue does not have. A vector is
a combination of the issuer's key and the subject's (RSA 3072, P-256, P-384, P-521, Ed25519), with the fields of the request
set or not. It passes if zlint has no error and no warning, and ` + "`openssl verify -x509_strict`" + ` accepts the certificate;
combinations that the profile's KeyConstraints exclude are refused. Certificates of the catalogue's profiles alone may have the
findings below, and are then counted as passed with an exempted finding: these profiles allow keyEncipherment to clients with
whatever key, as in every release; a profile of yours need not.

| exempted rule of zlint | why |
|---|---|
`)
	for _, e := range ofTheCatalogue {
		fmt.Fprintf(&d, "| %s | %s |\n", e.rule, e.because)
	}
	d.WriteString("\n| profile | certificates | level | exempted finding |\n|---|---|---|---|\n")
	for _, e := range r.exempted() {
		fmt.Fprintf(&d, "| %s | %d | %s | %s |\n", e.algorithm, e.certificates, e.level, e.rule)
	}
	return d.Bytes()
}

func writeReasons(d *bytes.Buffer, reasons map[string]int) {
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(d, "| %d | %s |\n", reasons[reason], reason)
	}
}

func writeByRow(d *bytes.Buffer, reasons []reasonOf) {
	for _, r := range reasons {
		fmt.Fprintf(d, "| %s | %s | %s | %d | %s |\n", r.operation, r.algorithm, r.source, r.vectors, r.reason)
	}
}
