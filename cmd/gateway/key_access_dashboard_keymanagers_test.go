// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
	"github.com/crypto-broker/crypto-broker-operator/test/dashboards"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
	"github.com/crypto-broker/crypto-broker-operator/test/loopback"
	"github.com/crypto-broker/crypto-broker-operator/test/prometheus"
)

// With DASHBOARD_PICTURES=FOLDER, the test goes on for two minutes and draws the dashboard.
func TestEachQueryOfTheDashboardOfKeyAccessHasAnAnswerUnderLoad(t *testing.T) {
	runIfService(t)
	repository, err := environment.Repository()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := environment.Cache(repository)
	if err != nil {
		t.Fatal(err)
	}
	program, err := prometheus.Find(t.Context(), os.Stderr, cache)
	if err != nil {
		t.Fatal(err)
	}
	boards, err := dashboards.Read(environment.Chart(repository))
	if err != nil {
		t.Fatal(err)
	}
	managed := startManagedService(t) // the service with keys in a key manager
	_, first := managed.file(wrapping.RSA2048)
	from := issuer.Start(t, issuer.Options{Audience: "key-access"})
	services := []*keyAccessProcess{newKeyAccessProcess(t, "first"), newKeyAccessProcess(t, "second")}
	addresses := []string{managed.status.listener.Addr().String()}
	for i, service := range services {
		service.configure(from, services[1-i])
		addresses = append(addresses, service.serveStatus())
		service.start()
		t.Cleanup(service.kill)
	}
	server, err := prometheus.Start(t.Context(), program, t.TempDir(), "", prometheus.Options{Interval: time.Second, Others: addresses})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	client := newKeyAccessClient(t, from, services)
	began := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	// ask asks for data keys for a time. It asks the services that are peers, and it asks the other service for a new data key and
	// for one that it has already seen.
	ask := func(duration time.Duration) {
		for end := time.Now().Add(duration); time.Now().Before(end); {
			_, fresh := managed.file(wrapping.RSA2048)
			for _, wanted := range []*kas.UnsignedRewrapRequest_WithPolicyRequest{first, fresh} {
				if _, failure := managed.ask(wanted); failure != "" {
					t.Fatal(failure)
				}
			}
			if found := client.ask(); found != "permit permit" {
				t.Fatalf("found %s, expected both data keys", found)
			}
			<-tick.C
		}
	}
	for i := range boards {
		if boards[i].Name != "key-access" {
			continue
		}
		err := boards[i].ExpectAnswers(t.Context(), server)
		for time.Since(began) < time.Minute && err != nil {
			ask(time.Second)
			err = boards[i].ExpectAnswers(t.Context(), server)
		}
		if err != nil {
			t.Fatal(err)
		}
		if folder := os.Getenv("DASHBOARD_PICTURES"); folder != "" {
			ask(2 * time.Minute)
			picture, err := dashboards.Draw(t.Context(), server, &boards[i], began, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(folder, "dashboard-key-access.svg"), picture)
		}
		return
	}
	t.Error("found no dashboard of key access services")
}

// serveStatus has the service serve metrics, and returns the address.
func (k *keyAccessProcess) serveStatus() string {
	k.t.Helper()
	address, err := loopback.Reserve("127.0.0.1")
	if err != nil {
		k.t.Fatal(err)
	}
	file := filepath.Join(k.dir, "config.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		k.t.Fatal(err)
	}
	write(k.t, file, strings.Replace(string(text), `statusBindAddress: "0"`, "statusBindAddress: "+address, 1))
	return address
}
