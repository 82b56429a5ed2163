// SPDX-License-Identifier: Apache-2.0

// Command example is a service that answers POST /hash with the digest of the body.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	cryptobroker "github.com/crypto-broker/crypto-broker-operator/clients/go"
)

// maxBody is the most that HashData takes, in bytes.
const maxBody = 1 << 20

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	client, err := cryptobroker.New(cryptobroker.WithProfile("Default"), cryptobroker.WithTimeout(10*time.Second))
	if err != nil {
		return err
	}
	server := &http.Server{Addr: ":8080", Handler: routes(client), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// Requests first, because they use the client.
	limit, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(limit), client.Close(limit))
}

func routes(client *cryptobroker.Client) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if health, err := client.Health(r.Context()); err != nil || health != cryptobroker.HealthServing {
			http.Error(w, "the broker does not serve", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("POST /hash", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		result, err := client.HashData(r.Context(), cryptobroker.HashDataRequest{Input: body})
		if err != nil {
			log.Print(err)
			http.Error(w, "the broker has not hashed the body", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(map[string]string{"algorithm": result.Algorithm, "digest": result.Hex()}); err != nil {
			log.Print(err)
		}
	})
	return mux
}
