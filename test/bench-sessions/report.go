// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// place identifies a row of the report.
type place struct {
	server, measured string
	connections      int
}

// results are the measurements.
type results struct {
	options options
	began   time.Time
	took    time.Duration
	// found has a sample for each round.
	found  map[place][]sample
	filled *filled
}

const introduction = `# Encrypted sessions

What [encrypted sessions](../operations/session.md) cost, beside a minimal server in Node.js with Redis. This page is what the command wrote:

` + "```sh\nmake bench-sessions\n```" + `

The client is [` + "`crypto-broker session bench`" + `](../session-bench.md), version 1 of the protocol, requests of 256 bytes. It measures one server after the other, in another
order in each round, and all of them share the processors of the machine with the client. Each server is started anew for each measurement, and has half of its time before as
a warm-up.

`

const figures = `
Figures are the median of the rounds with the quartiles. Where operations failed, there are no figures.

`

// document returns the report as Markdown.
func (r *results) document() string {
	var text strings.Builder
	text.WriteString(introduction)
	for _, server := range servers {
		fmt.Fprintf(&text, "* **%s**: %s\n", server.name, server.description)
	}
	text.WriteString(figures)
	text.WriteString(r.options.Conditions("make bench-sessions", r.began, r.took))
	r.writeTargets(&text)
	for _, measured := range measurements {
		r.writeTable(&text, measured)
	}
	r.writeFilled(&text)
	return text.String()
}

// values returns a figure of each round. It is empty if operations failed.
func (r *results) values(at place, of func(*sample) float64) []float64 {
	if r.failed(at) > 0 {
		return nil
	}
	var all []float64
	for i := range r.found[at] {
		if s := &r.found[at][i]; s.Done > 0 {
			all = append(all, of(s))
		}
	}
	return all
}

func (r *results) failed(at place) (sum int) {
	for _, s := range r.found[at] {
		sum += s.Failed
	}
	return sum
}

func perSecond(s *sample) float64 { return s.PerSecond }
func p50(s *sample) float64       { return s.P50 }
func p99(s *sample) float64       { return s.P99 }
func tail(s *sample) float64      { return s.P99 / s.P50 }
func cpuMicros(s *sample) float64 { return float64(s.cpu.Nanoseconds()) / 1e3 }

func (r *results) writeTargets(text *strings.Builder) {
	fmt.Fprintf(text, "## Targets\n\nOn this machine the client shares the processors with each server. If there are more processors, or if the client is "+
		"on another machine, only the processor time of the servers counts: the column divides the processor time of %s by the processor time of the other server.\n\n| target | wanted | found | by processor time of the servers | verdict |\n|---|---|---|---|---|\n", nodeServer)
	for _, target := range []struct {
		measured string
		wanted   float64
	}{{"init", 5}, {"request", 8}} {
		for _, n := range connections {
			node := place{nodeServer, target.measured, n}
			for _, server := range servers[1:] {
				at := place{server.name, target.measured, n}
				values := measurement.Ratios(r.values(at, perSecond), r.values(node, perSecond))
				fmt.Fprintf(text, "| %s, %s, %s over %s: times as many a second | ≥ %g | %s | %s | %s |\n", target.measured, measurement.Count(n, "connection"), server.name, nodeServer,
					target.wanted, measurement.Text(values), measurement.Text(measurement.Ratios(r.values(node, cpuMicros), r.values(at, cpuMicros))), measurement.Verdict(values, measurement.Median(values) >= target.wanted))
			}
		}
	}
	for _, server := range servers[1:] {
		values := r.values(place{server.name, "request", 100}, tail)
		fmt.Fprintf(text, "| request, 100 connections, %s: p99 over p50 | ≤ 10 | %s | – | %s |\n", server.name, measurement.Text(values), measurement.Verdict(values, measurement.Median(values) <= 10))
	}
	f := r.filled
	fmt.Fprintf(text, "| sessions in one broker with %s | ≥ 100,000 | %d, %d failed | – | %s |\n\n", memoryLimit, f.sessions, f.failed,
		measurement.Verdict([]float64{1}, f.failed == 0 && f.sessions >= 100_000))
	text.WriteString(whereTheTimeGoes)
	r.writeCeiling(text)
}

// writeCeiling writes the maximum ratio to the server in Node.js that the client could measure: the ratio of a server that takes no
// time. With so many connections the processors are always busy.
func (r *results) writeCeiling(text *strings.Builder) {
	const most = 100
	for _, measured := range measurements {
		node, gateway := place{nodeServer, measured, most}, place{gatewayServer, measured, most}
		rates, times := r.values(gateway, perSecond), r.values(gateway, cpuMicros)
		of := r.values(node, perSecond)
		if len(rates) == 0 || len(of) == 0 {
			continue
		}
		micros := float64(runtime.NumCPU()) * 1e6
		others := micros/measurement.Median(rates) - measurement.Median(times)
		fmt.Fprintf(text, "With %d connections, client, application and system take %.0f µs of processor time for each operation of `%s`. So a server that took no time at all would serve "+
			"%.1f times as many as %s here.\n\n", most, others, measured, micros/measurement.Median(of)/others, nodeServer)
	}
	node, gateway := r.values(place{nodeServer, "init", most}, cpuMicros), r.values(place{gatewayServer, "init", most}, cpuMicros)
	if len(node) > 0 && len(gateway) > 0 {
		fmt.Fprintf(text, "A gateway that did nothing but agree on keys would take %.0f %% of its processor time for `init`, and so %.1f times less than %s.\n\n",
			100*agreement, measurement.Median(node)/(agreement*measurement.Median(gateway)), nodeServer)
	}
}

// agreement is the part of the processor time of a new session that the key agreement takes, see whereTheTimeGoes.
const agreement = 0.57

// whereTheTimeGoes has the results of profiling the gateway (pprof, 10 connections).
const whereTheTimeGoes = `What a broker does for sessions alone is a part of these times. Of the processor time of the gateway for a new session, 57 % is the agreement on the key, nearly all of it P-256 in Go's
cryptographic module, and the client needs as much on the same processors. Of the time for an encrypted request, opening and sealing with all checks are a tenth; the rest is HTTP with client and
application, with a quarter of the time in system calls.

`

func (r *results) writeTable(text *strings.Builder, measured string) {
	what := "a new session"
	if measured == "request" {
		what = "an encrypted request and its reply"
	}
	fmt.Fprintf(text, "## %s: %s\n\nThe processor time is the one of the server for each operation, without the client, and without the application behind the gateway.\n\n"+
		"| server | connections | a second | p50, ms | p99, ms | p99 over p50 | processor time, µs | … of %s over it | done | failed |\n|---|---|---|---|---|---|---|---|---|---|\n",
		measured, what, nodeServer)
	for _, server := range servers {
		for _, n := range connections {
			at := place{server.name, measured, n}
			done := 0
			for _, s := range r.found[at] {
				done += s.Done
			}
			fmt.Fprintf(text, "| %s | %d | %s | %s | %s | %s | %s | %s | %d | %d |\n", server.name, n, measurement.WholeText(r.values(at, perSecond)), measurement.Text(r.values(at, p50)),
				measurement.Text(r.values(at, p99)), measurement.Text(r.values(at, tail)), measurement.WholeText(r.values(at, cpuMicros)),
				measurement.Text(measurement.Ratios(r.values(place{nodeServer, measured, n}, cpuMicros), r.values(at, cpuMicros))), done, r.failed(at))
		}
	}
	text.WriteString("\n")
	for _, server := range servers {
		for _, n := range connections {
			for _, s := range r.found[place{server.name, measured, n}] {
				if s.Failed > 0 {
					fmt.Fprintf(text, "%s, %s: %d failed, for example: %s\n\n", server.name, measurement.Count(n, "connection"), s.Failed, s.Error)
				}
			}
		}
	}
}

func (r *results) writeFilled(text *strings.Builder) {
	f := r.filled
	const mebibyte = 1 << 20
	fmt.Fprintf(text, "## %d sessions\n\nA broker with `--memory-limit %s`, and requests by 10 connections through its socket before and afterwards.\n\n"+
		"| | without sessions | with %d |\n|---|---|---|\n", f.sessions, memoryLimit, f.sessions)
	fmt.Fprintf(text, "| resident memory, MiB | %d | %d |\n", f.before/mebibyte, f.after/mebibyte)
	fmt.Fprintf(text, "| requests a second | %.0f | %.0f |\n| p50, ms | %.2f | %.2f |\n| p99, ms | %.2f | %.2f |\n| failed | %d | %d |\n\n", f.empty.PerSecond, f.full.PerSecond,
		f.empty.P50, f.full.P50, f.empty.P99, f.full.P99, f.empty.Failed, f.full.Failed)
	fmt.Fprintf(text, "That is %d bytes of resident memory a session, with garbage that is not collected yet. A session itself takes some 400 bytes, see [limits](../limits.md#sessions).\n",
		(f.after-f.before)/int64(f.sessions))
}
