// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package benchkeys

import (
	"fmt"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/cosmian"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/openbao"
	"github.com/crypto-broker/crypto-broker-operator/test/pykmip"
)

// results are what was measured.
type results struct {
	began time.Time
	took  time.Duration
	// kmip are all products with KMIP: pykmip, and cosmian if it is built.
	kmip            []*kmipServers
	pykmip, cosmian *kmipServers
	unwrapping      *unwrapping
	counts          []counted
}

const introduction = `# Keys in key managers

What keys in key managers cost, and how often the broker asks for them. This page is what the command wrote:

` + "```sh\nmake bench-keys\n```" + `

The key managers are %s, and OpenBao %s with its engine Transit. Each is one more process on
the machine that measures, so clients and servers share its processors. Figures are the median of the rounds with the quartiles. Where
operations failed, there are no figures.

`

// document returns the report as Markdown.
func (r *results) document() string {
	var text strings.Builder
	products := "PyKMIP " + pykmip.Version + " (two servers with one database)"
	if r.cosmian != nil {
		products += ", Cosmian KMS " + cosmian.Version + " (the same)"
	}
	fmt.Fprintf(&text, introduction, products, openbao.Version)
	if r.cosmian == nil {
		text.WriteString("Cosmian KMS is not measured here, because it was not built: `hack/cosmian/build` builds it.\n\n")
	}
	fmt.Fprintf(&text, "`%s`, %s, load %s at the end, %s UTC; %d rounds, %s in all.\n\n", command(), measurement.Machine(), measurement.Load(),
		r.began.UTC().Format("2 January 2006 15:04"), *rounds, r.took.Round(time.Second))
	r.writeTargets(&text)
	for _, each := range r.kmip {
		each.writeRates(&text)
	}
	r.writeTimes(&text)
	r.writeCounts(&text)
	return text.String()
}

func command() string {
	if *rounds == defaultRounds {
		return "make bench-keys"
	}
	return fmt.Sprintf("make bench-keys ROUNDS=%d", *rounds)
}

// ratio returns the ratios of two times in each round, or nothing if any operation failed.
func ratio(of, to *timed) []float64 {
	if of.failed+to.failed > 0 {
		return nil
	}
	var all []float64
	for round, time := range of.times {
		all = append(all, time/to.times[round])
	}
	return all
}

// spread returns a median and quartiles as text, or a dash if there are no values.
func spread(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	return measurement.SpreadOf(values).String()
}

// verdict returns whether a target is met, or that nothing was measured.
func verdict(measured, met bool) string {
	switch {
	case !measured:
		return "not measured: operations failed"
	case met:
		return "met"
	}
	return "**missed**"
}

func (r *results) writeTargets(text *strings.Builder) {
	text.WriteString("## Targets\n\n| target | wanted | found | verdict |\n|---|---|---|---|\n")
	atLeast := func(what string, wanted float64, values []float64) {
		fmt.Fprintf(text, "| %s | ≥ %g | %s | %s |\n", what, wanted, spread(values), verdict(len(values) > 0, measurement.Median(values) >= wanted))
	}
	const get = "get AES-256"
	atLeast("PyKMIP, get AES-256, connections reused: rate of two servers over one", 1.6,
		r.pykmip.speed.ratios(column{get, "reused", 2}, column{get, "reused", 1}))
	if r.cosmian != nil {
		atLeast("Cosmian KMS, get AES-256, one server: rate of reused connections over new ones", 14,
			r.cosmian.speed.ratios(column{get, "reused", 1}, column{get, "new", 1}))
	}
	atLeast("data key wrapped by OpenBao: time of an unwrap by OpenBao over one from memory", 50, ratio(&r.unwrapping.miss, &r.unwrapping.hit))
	var extra []float64
	if local := r.pykmip.keys; local.found.failed+local.encrypted.failed == 0 {
		for round, time := range local.found.times {
			extra = append(extra, (time-local.encrypted.times[round])/1e3)
		}
	}
	fmt.Fprintf(text, "| encryption of 32 bytes with a key in memory, over one with a key at hand, µs more | ≤ 10 | %s | %s |\n", spread(extra),
		verdict(len(extra) > 0, measurement.Median(extra) <= 10))
	for _, c := range r.counts {
		fmt.Fprintf(text, "| %s: requests at the server | ≤ %d | %d | %s |\n", c.what, c.wanted, c.found, verdict(c.failed == 0, c.found <= c.wanted))
	}
	text.WriteString("\nThe broker asks PyKMIP by two requests for a key whose name it has not asked for yet: PyKMIP does not take the object that Locate finds as the one that the rest of the message is about, " +
		"as the standard has it. A server that does so gets one request for each key. " +
		"A wrapped data key names the version of its key, so an unwrap costs one request at each server.\n" +
		"Two servers can be twice as fast only where each has a processor of its own.\n\n")
}

func (k *kmipServers) writeRates(text *strings.Builder) {
	fmt.Fprintf(text, "## %s, operations a minute\n\n`crypto-broker kmip-speed` with five clients, each with 25 operations a round (RSA: 5, EC: 2). "+
		"With connections that are reused, the first server makes all keys. PyKMIP makes no elliptic curve keys, and two servers of Cosmian KMS with one SQLite database sometimes refuse to make keys.\n\n"+
		"| operation | one server, new connections | one, reused | two servers, new connections | two, reused | "+
		"reused over new, one server | two over one, new | two over one, reused | failed |\n|---|---|---|---|---|---|---|---|---|\n", k.name)
	for _, operation := range []string{"get AES-256", "wrap AES-256", "create AES-256", "create RSA-2048", "create EC P-256"} {
		at := func(connections string, servers int) column { return column{operation, connections, servers} }
		fmt.Fprintf(text, "| %s", operation)
		for servers := 1; servers <= 2; servers++ {
			for _, connections := range []string{"new", "reused"} {
				rates := k.speed.rates[at(connections, servers)]
				if k.speed.failures[operation] > 0 || len(rates) == 0 {
					text.WriteString(" | –")
					continue
				}
				s := measurement.SpreadOf(rates)
				fmt.Fprintf(text, " | %.0f (%.0f–%.0f)", s.Median, s.Low, s.High)
			}
		}
		fmt.Fprintf(text, " | %s | %s | %s | %d |\n", spread(k.speed.ratios(at("reused", 1), at("new", 1))),
			spread(k.speed.ratios(at("new", 2), at("new", 1))), spread(k.speed.ratios(at("reused", 2), at("reused", 1))), k.speed.failures[operation])
	}
	text.WriteString("\n")
}

func (r *results) writeTimes(text *strings.Builder) {
	fmt.Fprintf(text, "## The broker's own code\n\nOne caller. A round times %d operations that wait for a key manager, and %d that do not. "+
		"The checks of a call and the socket are not part of it.\n\n| operation | µs | failed |\n|---|---|---|\n", slow, fast)
	write := func(what string, t *timed) {
		var micros []float64
		for _, nanos := range t.times {
			micros = append(micros, nanos/1e3)
		}
		if t.failed > 0 {
			micros = nil
		}
		fmt.Fprintf(text, "| %s | %s | %d |\n", what, spread(micros), t.failed)
	}
	for _, each := range r.kmip {
		write("key of "+each.name+", asked for", &each.keys.asked)
		write("key of "+each.name+", from memory", &each.keys.remembered)
	}
	write("encryption of 32 bytes with a key at hand", &r.pykmip.keys.encrypted)
	write("encryption of 32 bytes with a key of PyKMIP from memory", &r.pykmip.keys.found)
	write("data key, unwrapped by OpenBao", &r.unwrapping.miss)
	write("data key, from memory", &r.unwrapping.hit)
	text.WriteString("\n")
	for _, each := range r.kmip {
		fmt.Fprintf(text, "A key that %s is asked for, over one from memory: %s. ", each.name, spread(ratio(&each.keys.asked, &each.keys.remembered)))
	}
	fmt.Fprintf(text, "A data key unwrapped by OpenBao, over one from memory: %s.\n",
		spread(ratio(&r.unwrapping.miss, &r.unwrapping.hit)))
}

func (r *results) writeCounts(text *strings.Builder) {
	fmt.Fprintf(text, "\n## Requests, counted at the key manager\n\nA proxy before the key manager ends TLS on both sides and counts the requests that it passes. "+
		"The 1,000 questions come from %d callers, each for one of the 120 keys in turn.\n\n| what | requests | of them | failed |\n|---|---|---|---|\n", askers)
	for _, c := range r.counts {
		fmt.Fprintf(text, "| %s | %d | %s | %d |\n", c.what, c.found, c.of, c.failed)
	}
}
