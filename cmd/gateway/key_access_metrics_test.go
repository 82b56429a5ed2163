// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// keyAccessSeries returns the metrics of a key access service, by name and labels.
func keyAccessSeries(t *testing.T, k *keyAccess) map[string]string {
	t.Helper()
	reply := httptest.NewRecorder()
	k.status.Handler.ServeHTTP(reply, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	found := map[string]string{}
	for line := range strings.Lines(reply.Body.String()) {
		if strings.HasPrefix(line, "crypto_broker_gateway_key_access_") {
			end := strings.LastIndex(line, " ")
			found[line[:end]] = strings.TrimSpace(line[end:])
		}
	}
	return found
}

func startKeyAccess(t *testing.T) (k *keyAccess, stop func()) {
	t.Helper()
	return startKeyAccessWith(t, keyAccessConfig(t, issuer.Start(t, issuer.Options{HTTP: true}).URL, "", ""))
}

// startKeyAccessWith starts a service with a configuration file.
func startKeyAccessWith(t *testing.T, file string) (k *keyAccess, stop func()) {
	t.Helper()
	config, err := readKeyAccessFile(file)
	if err != nil {
		t.Fatal(err)
	}
	k, err = newKeyAccess(t.Context(), config, nil, io.Discard, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.run(ctx) }()
	return k, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestWhatCallersSendIsNeverInALabel(t *testing.T) {
	k, stop := startKeyAccess(t)
	before := keyAccessSeries(t, k)
	const hostile = "hostile"
	for i := range 50 {
		text := fmt.Sprintf("%s-%d", hostile, i)
		for _, path := range []string{"/kas/v2/rewrap", "/kas.AccessService/Rewrap", "/" + text} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+k.listener.Addr().String()+path+"?"+text, strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = text
			r.Header = http.Header{"Authorization": {"DPoP " + text + ".e30.e30"}, "Dpop": {text}, "Content-Type": {"application/" + text}, "User-Agent": {text}}
			reply, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := reply.Body.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
	stop() // after this, all requests have ended
	after := keyAccessSeries(t, k)
	for series := range after {
		if _, known := before[series]; !known || strings.Contains(series, hostile) {
			t.Errorf("found the series %s, which is new", series)
		}
	}
	if len(before) < 40 || len(before) > 110 {
		t.Errorf("found %d series, expected 40 to 110", len(before))
	}
	if found := after[`crypto_broker_gateway_key_access_requests_total{from="client",outcome="invalid_token"}`]; found != "100" {
		t.Errorf("found %s requests with an invalid token, expected 100", found)
	}
	if found := after[`crypto_broker_gateway_key_access_request_duration_seconds_count{from="client"}`]; found != "100" {
		t.Errorf("found %s durations, expected 100", found)
	}
	for series, expected := range map[string]string{"requests_in_flight": "0", "requests_waiting": "0", `keys{state="current"}`: "1", `keys{state="old"}`: "0", "proofs": "0"} {
		if found := after["crypto_broker_gateway_key_access_"+series]; found != expected {
			t.Errorf("%s: found %q, expected %s", series, found, expected)
		}
	}
}

// The alert for slow requests has this threshold.
func TestDurationsHaveTheBucketOfTheAlert(t *testing.T) {
	if !slices.Contains(keyAccessBuckets, 0.2) {
		t.Errorf("found the buckets %v, expected 0.2 among them", keyAccessBuckets)
	}
}

// One request has one call of Began, one of Ended, and one of DataKey for each data key.
func BenchmarkKeyAccessMetrics(b *testing.B) {
	m := newKeyAccessMetrics(prometheus.NewRegistry(), nil, nil, nil)
	b.ReportAllocs()
	for b.Loop() {
		m.Began(keyaccess.FromClient)
		m.DataKey(keyaccess.Released)
		m.Ended(keyaccess.FromClient, keyaccess.Answered, time.Millisecond)
	}
}
