// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"io"
	"log/slog"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
)

// BenchmarkAdd measures a record that a call does not wait for, until it is written.
func BenchmarkAdd(b *testing.B) {
	log, err := audit.New(audit.Options{Output: audit.Stream(io.Discard), Signer: key(1), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	r := record(1)
	b.ReportAllocs()
	for b.Loop() {
		log.Add(r)
	}
	log.Close()
	if _, lost := log.Stats(); lost > 0 {
		b.ReportMetric(float64(lost)/float64(b.N), "lost/op")
	}
}

// BenchmarkWrite measures a record that a call waits for.
func BenchmarkWrite(b *testing.B) {
	log, err := audit.New(audit.Options{Output: audit.Stream(io.Discard), Signer: key(1), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	r := record(1)
	b.ReportAllocs()
	for b.Loop() {
		if err := log.Write(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	log.Close()
}
