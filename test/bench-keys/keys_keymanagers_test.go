// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package benchkeys

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/cosmian"
	"github.com/crypto-broker/crypto-broker-operator/test/kmipserver"
	"github.com/crypto-broker/crypto-broker-operator/test/openbao"
	"github.com/crypto-broker/crypto-broker-operator/test/pykmip"
)

const defaultRounds = 3

var (
	report = flag.String("report", "", "file for the results, Markdown")
	rounds = flag.Int("rounds", defaultRounds, "how often times and rates are measured")
)

// kmipServers are two servers of a product, and what is measured there.
type kmipServers struct {
	name    string
	servers *kmipserver.Servers
	speed   *speed
	keys    *kmipKeys
}

func newKMIP(b *testing.B, name string, servers *kmipserver.Servers) *kmipServers {
	b.Helper()
	return &kmipServers{name, servers, newSpeed(b, servers), newKMIPKeys(b, servers)}
}

// BenchmarkKeys measures everything once and prints it. It fails only if something cannot be
// measured: a ratio that misses its target is a result.
func BenchmarkKeys(b *testing.B) {
	r := &results{began: time.Now(), pykmip: newKMIP(b, "PyKMIP", pykmip.Start(b, 2))}
	r.kmip = []*kmipServers{r.pykmip}
	switch _, err := cosmian.Folder(); {
	case err == nil:
		r.cosmian = newKMIP(b, "Cosmian KMS", cosmian.Start(b, 2))
		r.kmip = append(r.kmip, r.cosmian)
	case !errors.Is(err, fs.ErrNotExist):
		b.Fatal(err)
	}
	bao := openbao.Start(b)
	r.unwrapping = newUnwrapping(b, bao)
	for round := range *rounds {
		_, _ = fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, *rounds)
		for _, each := range r.kmip {
			each.speed.measure(b)
			each.keys.measure(b)
		}
		r.unwrapping.measure(b)
	}
	for _, each := range r.kmip {
		r.counts = append(r.counts, countKMIP(b, each)...)
	}
	r.counts = append(r.counts, countUnwraps(b, bao)...)
	r.took = time.Since(r.began)
	text := r.document()
	fmt.Print(text)
	if *report != "" {
		if err := os.WriteFile(*report, []byte(text), 0o644); err != nil { //nolint:gosec // for everybody to read
			b.Fatal(err)
		}
	}
}
