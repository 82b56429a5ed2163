// SPDX-License-Identifier: Apache-2.0

// Command app calls its broker with the client all the time, and serves the numbers of its
// calls at :8080/stats, in the same form as the demo application. The end-to-end tests kill its
// broker.
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
	// pause is the time between two calls of a caller.
	pause = 5 * time.Millisecond
	// maxErrors is how many error texts are kept.
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
	client, err := cryptobroker.New(cryptobroker.WithProfile("Default"))
	if err != nil {
		return err
	}
	tally := &tally{Started: time.Now(), Errors: []string{}}
	server := &http.Server{Addr: ":8080", Handler: http.HandlerFunc(tally.serve), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()

	var calling sync.WaitGroup
	for range callers {
		calling.Go(func() { tally.call(ctx, client) })
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

func (t *tally) serve(response http.ResponseWriter, _ *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Now = time.Now()
	response.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(response).Encode(t); err != nil {
		fmt.Fprintln(os.Stderr, "app: write the numbers of the calls:", err)
	}
}
