// SPDX-License-Identifier: Apache-2.0

// Command app calls its broker with the client all the time, and serves the numbers of its
// calls at :8080/stats, in the same form as the demo application. The end-to-end tests kill its
// broker.
//
// If the environment variable ENCRYPT_WITH has the id of a key, some callers encrypt and decrypt
// with it, each call is made once, and the numbers of these calls are at :8080/encryption.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
)

const (
	callers = 8
	// encrypting is the number of callers that encrypt if ENCRYPT_WITH is set. The same number of
	// callers hash then.
	encrypting = 2
	// pause is the time between two calls of a caller.
	pause = 5 * time.Millisecond
	// maxErrors is the maximum number of error texts that are kept.
	maxErrors = 20
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "app:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	options := []cryptobroker.Option{cryptobroker.WithProfile("Default")}
	key, hashing := os.Getenv("ENCRYPT_WITH"), callers
	if key != "" {
		hashing = encrypting
		options = append(options, cryptobroker.WithRetryBudget(0))
	}
	client, err := cryptobroker.New(options...)
	if err != nil {
		return err
	}
	tally := &tally{Started: time.Now(), Errors: []string{}}
	encryption := &encryptionTally{Failed: map[string]int64{}, Errors: []string{}, KeyIDs: []string{}}
	server := &http.Server{Addr: ":8080", Handler: handler(tally, encryption), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()

	var calling sync.WaitGroup
	for range hashing {
		calling.Go(func() { tally.call(ctx, client) })
	}
	if key != "" {
		for range encrypting {
			calling.Go(func() { encryption.call(ctx, client, key) })
		}
	}
	select {
	case err = <-ended:
		stop()
	case <-ctx.Done():
		err = server.Close()
	}
	calling.Wait()
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, client.Close(closing))
}

// tally counts calls. It has the same JSON fields as the demo application.
type tally struct {
	mu                  sync.Mutex
	Now                 time.Time `json:"now"`
	Started             time.Time `json:"started"`
	Calls               int64     `json:"calls"`
	Failed              int64     `json:"failed"`
	Errors              []string  `json:"errors"`
	Algorithm           string    `json:"algorithm"`
	SlowestMilliseconds float64   `json:"slowestMilliseconds"`
}

// call hashes until the context ends. It does not count the call that the end of the context
// interrupts.
func (t *tally) call(ctx context.Context, client *cryptobroker.Client) {
	input := []byte(rand.Text())
	for ctx.Err() == nil {
		began := time.Now()
		result, err := client.HashData(ctx, cryptobroker.HashDataRequest{Input: input})
		if ctx.Err() != nil {
			return
		}
		t.count(result.Algorithm, err, time.Since(began))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (t *tally) count(algorithm string, err error, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Calls++
	if err != nil {
		t.Failed++
		if len(t.Errors) < maxErrors {
			t.Errors = append(t.Errors, err.Error())
		}
		return
	}
	t.Algorithm = algorithm
	t.SlowestMilliseconds = max(t.SlowestMilliseconds, float64(took.Microseconds())/1000)
}

// handler answers /encryption, and everything else with the numbers of the other calls.
func handler(hashing *tally, encryption *encryptionTally) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(response http.ResponseWriter, _ *http.Request) {
		hashing.mu.Lock()
		defer hashing.mu.Unlock()
		hashing.Now = time.Now()
		write(response, hashing)
	})
	mux.HandleFunc("/encryption", func(response http.ResponseWriter, _ *http.Request) {
		encryption.mu.Lock()
		defer encryption.mu.Unlock()
		write(response, encryption)
	})
	return mux
}

func write(response http.ResponseWriter, numbers any) {
	response.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(response).Encode(numbers); err != nil {
		fmt.Fprintln(os.Stderr, "app: write the numbers of the calls:", err)
	}
}
