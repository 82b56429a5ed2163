// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// measured returns results of two rounds: each other server is five times as fast as the first one.
func measured() *results {
	r := &results{options: options{Rounds: measurement.Rounds{Rounds: 2}}, found: map[place][]sample{}, filled: &filled{sessions: 100_000, before: 10 << 20, after: 110 << 20}}
	for i, server := range servers {
		for _, what := range measurements {
			for _, n := range connections {
				rate := 1000.0
				if i > 0 {
					rate = 5000
				}
				s := sample{PerSecond: rate, P50: 1, P99: 9, Done: 100, cpu: time.Millisecond}
				r.found[place{server.name, what, n}] = []sample{s, s}
			}
		}
	}
	return r
}

func TestTheReportComparesWithTheTargets(t *testing.T) {
	text := measured().document()
	for _, want := range []string{
		"| init, 1 connection, socket over Node.js and Redis: times as many a second | ≥ 5 | 5.00 (5.00–5.00) | 1.00 (1.00–1.00) | met |",
		"| request, 10 connections, socket over Node.js and Redis: times as many a second | ≥ 8 | 5.00 (5.00–5.00) | 1.00 (1.00–1.00) | **missed** |",
		"| request, 100 connections, socket: p99 over p50 | ≤ 10 | 9.00 (9.00–9.00) | – | met |",
		"| sessions in one broker with 512Mi | ≥ 100,000 | 100000, 0 failed | – | met |",
		"| socket | 100 | 5000 (5000–5000) | 1.00 (1.00–1.00) | 9.00 (9.00–9.00) | 9.00 (9.00–9.00) | 1000 (1000–1000) | 1.00 (1.00–1.00) | 200 | 0 |",
		"A gateway that did nothing but agree on keys would take 57 % of its processor time for `init`, and so 1.8 times less than Node.js and Redis.",
		"| resident memory, MiB | 10 | 110 |",
		"That is 1048 bytes of resident memory a session",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
}

func TestTheReportHasNoFiguresWhereOperationsFailed(t *testing.T) {
	r := measured()
	r.found[place{nodeServer, "init", 10}][1] = sample{PerSecond: 1, Done: 1, Failed: 3, Error: "away"}
	text := r.document()
	for _, want := range []string{
		"| init, 10 connections, socket over Node.js and Redis: times as many a second | ≥ 5 | – | – | not measured: calls failed |",
		"| Node.js and Redis | 10 | – | – | – | – | – | – | 101 | 3 |",
		"Node.js and Redis, 10 connections: 3 failed, for example: away",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
}

func TestAWrongCommandLineIsRefused(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"--rounds", "0"}, {"--duration", "1ms"}, {"--duration", "2m"}, {"--sessions", "0"}, {"--sessions", "200000"}} {
		if _, err := readOptions(args); err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("%q: %v", args, err)
		}
	}
}
