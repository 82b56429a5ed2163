// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

// Package benchkeys measures what keys in key managers cost, and counts at the key managers how
// often they are asked. "make bench-keys" runs it.
package benchkeys

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/openbao"
	"github.com/crypto-broker/crypto-broker-operator/test/pykmip"
)

const defaultRounds = 3

var (
	report = flag.String("report", "", "file for the results, Markdown")
	rounds = flag.Int("rounds", defaultRounds, "how often times and rates are measured")
)

// BenchmarkKeys measures everything once and prints it. It fails only if something cannot be
// measured: a ratio that misses its target is a result.
func BenchmarkKeys(b *testing.B) {
	r := &results{began: time.Now()}
	kmipServers := pykmip.Start(b, 2)
	bao := openbao.Start(b)
	speed := newSpeed(b, kmipServers)
	provider := newKMIPKeys(b, kmipServers)
	unwrapping := newUnwrapping(b, bao)
	for round := range *rounds {
		_, _ = fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, *rounds)
		speed.measure(b)
		provider.measure(b)
		unwrapping.measure(b)
	}
	r.speed, r.keys, r.unwrapping = speed, provider, unwrapping
	r.counts = append(countKMIP(b, kmipServers), countUnwraps(b, bao)...)
	r.took = time.Since(r.began)
	text := r.document()
	fmt.Print(text)
	if *report != "" {
		if err := os.WriteFile(*report, []byte(text), 0o644); err != nil { //nolint:gosec // for everybody to read
			b.Fatal(err)
		}
	}
}
