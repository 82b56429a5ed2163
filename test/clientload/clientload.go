// SPDX-License-Identifier: Apache-2.0

// Package clientload lets the clients of this repository put load on a broker, each with its program in test/contract/drivers. The
// only thing it knows about each language is how to start the program.
package clientload

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/dialogue"
)

// The ways of calls: by the client of gRPC of the language, by our client with unary calls, and by our
// client with Exchange.
const (
	Bare     = "bare"
	Unary    = "unary"
	Exchange = "exchange"
)

// The operations of a load. Health is no operation of Exchange.
const (
	HashData = "HashData"
	Health   = "Health"
)

// patience is how much longer than its load a program may take to answer. It covers the start, which compiles the program the first
// time, and calls that wait for a broker.
const patience = 10 * time.Minute

// Load is what the callers of a program do: each begins its next call when it has its reply.
type Load struct {
	Way       string `json:"way"`
	Operation string `json:"operation"`
	Callers   int    `json:"callers"`
	Millis    int64  `json:"millis"`
}

// Measured has the results of a program. Times are in microseconds.
type Measured struct {
	Done   int `json:"done"`
	Failed int `json:"failed"`
	// Error is the error of one call that failed.
	Error     string  `json:"error"`
	PerSecond float64 `json:"perSecond"`
	P50       float64 `json:"p50"`
	P99       float64 `json:"p99"`
}

// Program is a running program that makes loads.
type Program struct{ dialogue *dialogue.Program }

// Clients returns the names of all clients, sorted.
func Clients(repository string) ([]string, error) {
	programs, err := filepath.Glob(filepath.Join(drivers(repository), "*", "run"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, path := range programs {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("found no programs in %s", drivers(repository))
	}
	return names, nil
}

func drivers(repository string) string {
	return filepath.Join(repository, "test", "contract", "drivers")
}

// Start starts the program of a client for the broker at a socket. The program ends with the context. Optimized compiles it like a
// release, which takes longer.
func Start(ctx context.Context, repository, client, socket string, optimized bool) (*Program, error) {
	arguments := []string{"--load"}
	if optimized {
		arguments = append(arguments, "--optimized")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(drivers(repository), client, "run"), arguments...)
	cmd.Env = append(os.Environ(), "CRYPTO_BROKER_SOCKET="+socket)
	p, err := dialogue.Start(cmd)
	return &Program{p}, err
}

// Make makes a load and returns what the program has measured. It kills the program if it does not answer.
func (p *Program) Make(l Load) (m Measured, err error) {
	err = p.dialogue.Ask(l, &m, patience+time.Duration(l.Millis)*time.Millisecond)
	return m, err
}

// Close ends the program in order.
func (p *Program) Close() error { return p.dialogue.Close() }
