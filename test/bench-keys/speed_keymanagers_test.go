// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package benchkeys

import (
	"encoding/csv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/kmipserver"
)

// speed measures KMIP servers with "crypto-broker kmip-speed".
type speed struct {
	program string
	servers *kmipserver.Servers
	// rates are operations a minute, one for each round in which none failed.
	rates    map[column][]float64
	failures map[string]int // by operation
}

// column is an operation, how it used connections ("new" or "reused"), and the number of servers.
type column struct {
	operation, connections string
	servers                int
}

// loads are the command lines of one round. Making RSA keys takes long. PyKMIP makes no elliptic curve keys, and the report shows
// that as failures.
var loads = [][]string{
	{"--get", "--wrap", "--create", "--concurrency=5", "--repeat=25"},
	{"--create-rsa", "--concurrency=5", "--repeat=5"},
	{"--create-ecc", "--concurrency=5", "--repeat=2"},
}

func newSpeed(b *testing.B, servers *kmipserver.Servers) *speed {
	b.Helper()
	repository, err := environment.Repository()
	if err != nil {
		b.Fatal(err)
	}
	s := &speed{filepath.Join(b.TempDir(), "crypto-broker"), servers, map[column][]float64{}, map[string]int{}}
	if _, err := environment.Command(b.Context(), repository, os.Stderr, "go", "build", "-o", s.program, "./cmd/crypto-broker"); err != nil {
		b.Fatal(err)
	}
	return s
}

// measure does one round: each load with one server and with two, in random order.
func (s *speed) measure(b *testing.B) {
	for _, load := range loads {
		for _, n := range rand.Perm(2) {
			s.run(b, load, n+1)
		}
	}
}

func (s *speed) run(b *testing.B, load []string, servers int) {
	arguments := append([]string{
		"kmip-speed", "--compare", "--output=csv", "--server=" + strings.Join(s.servers.Addresses[:servers], ","),
		"--cert", s.servers.Certificate, "--key", s.servers.Key, "--ca", s.servers.Authority,
	}, load...)
	// The exit code is 1 where operations failed, and the table says how many.
	out, runErr := exec.CommandContext(b.Context(), s.program, arguments...).Output()
	records, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil || len(records) < 2 {
		b.Fatalf("kmip-speed printed no table: %v, %v\n%s", err, runErr, out)
	}
	for _, record := range records[1:] {
		failed, err := strconv.Atoi(record[6])
		if err != nil {
			b.Fatal(err)
		}
		s.failures[record[0]] += failed
		if failed > 0 {
			continue
		}
		rate, err := strconv.ParseFloat(record[3], 64)
		if err != nil {
			b.Fatal(err)
		}
		at := column{record[0], record[2], servers}
		s.rates[at] = append(s.rates[at], rate)
	}
}

// ratios returns the ratio of two columns in each round. It is empty if operations failed.
func (s *speed) ratios(of, to column) []float64 {
	if s.failures[of.operation] > 0 {
		return nil
	}
	var all []float64
	for round, rate := range s.rates[of] {
		all = append(all, rate/s.rates[to][round])
	}
	return all
}
