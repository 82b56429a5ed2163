// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/clientload"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// place identifies a row of the report.
type place struct {
	client, way, operation string
	callers                int
}

// results are the measurements.
type results struct {
	options options
	began   time.Time
	took    time.Duration
	// found has a measurement for each round.
	found map[place][]clientload.Measured
}

const introduction = `# Clients

What the clients of this project cost, each beside the client of gRPC of its language. This page is what the command wrote:

` + "```sh\nmake bench-clients\n```" + `

Each client is a program that calls one broker over its socket, with 1, 16 and 64 callers: goroutines in Go, threads in Java and Python, tasks in JavaScript, Rust and
Python's asyncio. A caller begins its next call when it has its reply. The calls are HashData with SHA-256 of 32 bytes, and Health.

* **bare**: the client of gRPC of the language, with the generated messages and its own defaults: grpc-go, grpc-java, ` + "`@grpc/grpc-js`" + `, grpcio, tonic.
* **unary**: our client, which makes each call as a unary call.
* **Exchange**: our client with its defaults: all calls are on [one stream](../operations/streams.md#exchange-many-calls-on-one-stream). Health is always a unary call.

One program after the other is measured, its ways in another order in each round, and all of them share the processors of the machine with the broker. Each
measurement comes after a warm-up of half its time, and the first round of all does not count: virtual machines compile in it what they run. Rounds are short and many,
because other work on the machine changes from second to second.

Figures are the median of the rounds with the quartiles. A ratio is made for each round from measurements that followed each other. Where calls failed, there are no figures.

`

// The targets: the maximum latency of a unary call relative to the bare client, and how many times more calls Exchange makes with
// exchangeCallers callers.
const (
	unaryTarget     = 1.10
	exchangeCallers = 16
)

// exchangeTarget returns how many times as many calls as the bare client a client makes with Exchange.
func exchangeTarget(client string) float64 {
	switch client {
	case "js", "python", "python-asyncio":
		return 1.5
	}
	return 2
}

// document returns the report as Markdown.
func (r *results) document() string {
	var text strings.Builder
	text.WriteString(introduction)
	text.WriteString(r.options.Conditions("make bench-clients", r.began, r.took))
	r.writeTargets(&text)
	for _, operation := range operations {
		r.writeTable(&text, operation)
	}
	r.writeErrors(&text)
	return strings.TrimRight(text.String(), "\n") + "\n"
}

// values returns a figure of each round. It is empty if calls failed.
func (r *results) values(at place, of func(*clientload.Measured) float64) []float64 {
	if r.failed(at) > 0 {
		return nil
	}
	var all []float64
	for i := range r.found[at] {
		all = append(all, of(&r.found[at][i]))
	}
	return all
}

func (r *results) failed(at place) (sum int) {
	for _, m := range r.found[at] {
		sum += m.Failed
	}
	return sum
}

func (r *results) done(at place) (sum int) {
	for _, m := range r.found[at] {
		sum += m.Done
	}
	return sum
}

func perSecond(m *clientload.Measured) float64 { return m.PerSecond }
func p50(m *clientload.Measured) float64       { return m.P50 }
func p99(m *clientload.Measured) float64       { return m.P99 }

// overBare returns a figure of each round divided by the figure of the bare client.
func (r *results) overBare(at place, of func(*clientload.Measured) float64) []float64 {
	bare := at
	bare.way = clientload.Bare
	return measurement.Ratios(r.values(at, of), r.values(bare, of))
}

func (r *results) writeTargets(text *strings.Builder) {
	text.WriteString("## Targets\n\n| client | target | wanted | found | verdict |\n|---|---|---|---|---|\n")
	for _, client := range r.options.clients {
		for _, operation := range operations {
			for _, n := range callers {
				values := r.overBare(place{client, clientload.Unary, operation, n}, p50)
				fmt.Fprintf(text, "| %s | unary %s, %s: p50 over bare | ≤ %.2f | %s | %s |\n", client, operation, measurement.Count(n, "caller"), unaryTarget, measurement.Text(values),
					measurement.Verdict(values, measurement.Median(values) <= unaryTarget))
			}
		}
		values, wanted := r.overBare(place{client, clientload.Exchange, clientload.HashData, exchangeCallers}, perSecond), exchangeTarget(client)
		fmt.Fprintf(text, "| %s | Exchange, HashData, %s: as many calls a second as bare, times | ≥ %g | %s | %s |\n", client, measurement.Count(exchangeCallers, "caller"), wanted,
			measurement.Text(values), measurement.Verdict(values, measurement.Median(values) >= wanted))
	}
	text.WriteByte('\n')
}

func (r *results) writeTable(text *strings.Builder, operation string) {
	fmt.Fprintf(text, "## %s\n\n| client | callers | way | a second | … over bare | p50, µs | … over bare | p99, µs | done | failed |\n|---|---|---|---|---|---|---|---|---|---|\n", operation)
	for _, client := range r.options.clients {
		for _, n := range callers {
			for _, way := range ways[operation] {
				at := place{client, way, operation, n}
				fmt.Fprintf(text, "| %s | %d | %s | %s | %s | %s | %s | %s | %d | %d |\n", client, n, titles[way], measurement.WholeText(r.values(at, perSecond)),
					measurement.Text(r.overBare(at, perSecond)), measurement.WholeText(r.values(at, p50)), measurement.Text(r.overBare(at, p50)), measurement.WholeText(r.values(at, p99)), r.done(at), r.failed(at))
			}
		}
	}
	text.WriteByte('\n')
}

// titles are the names of ways in the report.
var titles = map[string]string{clientload.Bare: "bare", clientload.Unary: "unary", clientload.Exchange: "Exchange"}

// writeErrors writes an example of a failed call, if there is one.
func (r *results) writeErrors(text *strings.Builder) {
	for _, client := range r.options.clients {
		for _, operation := range operations {
			for _, n := range callers {
				for _, way := range ways[operation] {
					at := place{client, way, operation, n}
					for _, m := range r.found[at] {
						if m.Failed > 0 {
							fmt.Fprintf(text, "%s, %s, %s, %s: %d failed, for example: %s\n\n", client, titles[way], operation, measurement.Count(n, "caller"), m.Failed, m.Error)
						}
					}
				}
			}
		}
	}
}
