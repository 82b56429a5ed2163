// SPDX-License-Identifier: Apache-2.0

// Command two-nations is a service that encrypts files for two nations. Each nation has a key access service of its own, and
// a file can be read only if both of them release their share of its data key.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/opentdf/platform/sdk"
)

const (
	// maxBody is the size of a file, in bytes.
	maxBody = 1 << 20
	// answerTime is how long both nations have for an answer.
	answerTime = 10 * time.Second
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	s := &service{nations: strings.Fields(os.Getenv("NATIONS")), attribute: os.Getenv("ATTRIBUTE")}
	if len(s.nations) != 2 {
		return fmt.Errorf("NATIONS: found %q, expected the URLs of two key access services", s.nations)
	}
	// The first nation tells the SDK where tokens come from.
	client, err := sdk.New(s.nations[0], sdk.WithClientCredentials(os.Getenv("CLIENT_ID"), os.Getenv("CLIENT_SECRET"), nil))
	if err != nil {
		return fmt.Errorf("reach %s: %w", s.nations[0], err)
	}
	s.client = client
	server := &http.Server{Addr: ":8080", Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(limit), client.Close())
}

type service struct {
	nations   []string
	attribute string
	client    *sdk.SDK
}

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("POST /encrypt", answer(s.encrypt))
	mux.HandleFunc("POST /decrypt", answer(s.decrypt))
	return mux
}

// encrypt makes a file whose data key has a share for each nation. Each share is wrapped with the key of its nation.
func (s *service) encrypt(ctx context.Context, text []byte) ([]byte, error) {
	var nations []sdk.KASInfo
	for _, url := range s.nations {
		nations = append(nations, sdk.KASInfo{URL: url, Algorithm: "rsa:2048"})
	}
	var file bytes.Buffer
	_, err := s.client.CreateTDFContext(ctx, &file, bytes.NewReader(text),
		sdk.WithAutoconfigure(false), sdk.WithKasInformation(nations...), sdk.WithDataAttributes(s.attribute))
	return file.Bytes(), err
}

// decrypt asks both nations for their shares. Nobody else is asked, whatever the file says.
func (s *service) decrypt(ctx context.Context, file []byte) ([]byte, error) {
	reader, err := s.client.LoadTDF(bytes.NewReader(file), sdk.WithKasAllowlist(s.nations))
	if err != nil {
		return nil, err
	}
	if err := reader.Init(ctx); err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// answer does something with the body of a request. The reason of an error is for the log only.
func answer(do func(context.Context, []byte) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), answerTime)
		defer cancel()
		result, err := do(ctx, body)
		switch {
		case errors.Is(err, sdk.ErrRewrapForbidden):
			log.Print(err)
			http.Error(w, "a nation does not permit it", http.StatusForbidden)
		case err != nil:
			log.Print(err)
			http.Error(w, "both nations are needed, and one has not released its share", http.StatusBadGateway)
		default:
			w.Header().Set("Content-Type", "application/octet-stream")
			if _, err := w.Write(result); err != nil {
				log.Print(err)
			}
		}
	}
}
