// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// away starts a server that fails all requests. asked is closed after the second one of them.
func away(t *testing.T) (url string, asked <-chan struct{}) {
	t.Helper()
	var requests atomic.Int64
	second := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "", http.StatusServiceUnavailable)
		if requests.Add(1) == 2 {
			close(second)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, second
}

func TestAnIssuerThatIsAwayDelaysAKeyAccessServiceForALimitedTime(t *testing.T) {
	const missing = "the keys of the issuers are not read yet"
	for sentence, test := range map[string]struct {
		others   bool // there is an issuer that is not away
		patience time.Duration
		want     string
	}{
		"before its time is over":              {true, time.Hour, missing},
		"after its time is over":               {true, 0, ""},
		"after the time without other issuers": {false, 0, missing},
	} {
		t.Run(sentence, func(t *testing.T) {
			url, asked := away(t)
			more := "audiences: [key-access]"
			if test.others {
				more += "\n  insecureLoopback: true\n- url: " + issuer.Start(t, issuer.Options{HTTP: true}).URL + "\n  audiences: [key-access]"
			}
			config, err := readKeyAccessFile(keyAccessConfig(t, url, "audiences: [key-access]", more))
			if err != nil {
				t.Fatal(err)
			}
			k, err := newKeyAccess(t.Context(), config, nil, io.Discard, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			k.patience = test.patience
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- errors.Join(k.run(ctx), k.endAudit()) }()
			<-asked // the service has decided after the first request
			if found := k.ready(); found != test.want {
				t.Errorf("the service says %q, expected %q", found, test.want)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
