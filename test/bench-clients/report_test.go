// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/clientload"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// measured returns results of two rounds for two clients: unary calls take as long as bare ones and a tenth,
// and Exchange makes 1.8 times as many calls.
func measured() *results {
	r := &results{options: options{Rounds: measurement.Rounds{Rounds: 2}, clients: []string{"go", "js"}}, found: map[place][]clientload.Measured{}}
	for _, client := range r.options.clients {
		for operation, all := range ways {
			for _, n := range callers {
				for _, way := range all {
					m := clientload.Measured{Done: 100, PerSecond: 1000, P50: 100, P99: 300}
					switch way {
					case clientload.Unary:
						m.P50 = 110
					case clientload.Exchange:
						m.PerSecond = 1800
					}
					r.found[place{client, way, operation, n}] = []clientload.Measured{m, m}
				}
			}
		}
	}
	return r
}

func TestTheReportComparesWithTheTargetsOfEachLanguage(t *testing.T) {
	text := measured().document()
	for _, want := range []string{
		"| go | unary HashData, 1 caller: p50 over bare | ≤ 1.10 | 1.10 (1.10–1.10) | met |",
		"| go | Exchange, HashData, 16 callers: as many calls a second as bare, times | ≥ 2 | 1.80 (1.80–1.80) | **missed** |",
		"| js | Exchange, HashData, 16 callers: as many calls a second as bare, times | ≥ 1.5 | 1.80 (1.80–1.80) | met |",
		"| js | 64 | Exchange | 1800 (1800–1800) | 1.80 (1.80–1.80) | 100 (100–100) | 1.00 (1.00–1.00) | 300 (300–300) | 200 | 0 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
}

func TestTheReportHasNoFiguresWhereCallsFailed(t *testing.T) {
	r := measured()
	r.found[place{"go", clientload.Bare, clientload.Health, 16}][1] = clientload.Measured{Done: 1, Failed: 3, Error: "away"}
	text := r.document()
	for _, want := range []string{
		"| go | unary Health, 16 callers: p50 over bare | ≤ 1.10 | – | not measured: calls failed |",
		"| go | 16 | bare | – | – | – | – | – | 101 | 3 |",
		"go, bare, Health, 16 callers: 3 failed, for example: away",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
}

func TestOptionsOutOfRangeAreRefusedWithWhatIsExpected(t *testing.T) {
	clients := []string{"go", "js"}
	for want, args := range map[string][]string{
		`found --only "go,pascal", expected names of go, js`: {"--only", "go,pascal"},
		`found --rounds 0, expected 1 or more`:               {"--rounds", "0"},
		`found --duration 2m0s, expected 100ms to 1m`:        {"--duration", "2m"},
		`found the argument "loose", expected flags only`:    {"loose"},
	} {
		if _, err := readOptions(args, clients); err == nil || err.Error() != want {
			t.Errorf("%q: the error is %v, want %s", args, err, want)
		}
	}
	if o, err := readOptions([]string{"--only", "js"}, clients); err != nil || len(o.clients) != 1 || o.clients[0] != "js" {
		t.Errorf("--only js gives %v, %v", o.clients, err)
	}
}
