// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/federation"
)

func TestMetricsSayHowRequestsToPeersEnded(t *testing.T) {
	key := write(t, filepath.Join(t.TempDir(), "federation.key"), string(newKey(t)))
	file := keyAccessConfig(t, "http://127.0.0.1:1", "access:", "federation: {keyFiles: ["+key+"], peers: [{url: https://b.example}]}\naccess:")
	config, err := readKeyAccessFile(file)
	if err != nil {
		t.Fatal(err)
	}
	metrics := newPeerMetrics()
	registry := prometheus.NewPedanticRegistry()
	peers, err := config.peers(slog.New(slog.DiscardHandler), metrics, registry)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(peers.Close)
	for _, ended := range federation.Endings {
		metrics.observe("https://b.example", ended, time.Second)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			found[family.GetName()] += metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	for name, expected := range map[string]float64{
		"crypto_broker_gateway_key_access_peer_usable": 1, "crypto_broker_gateway_key_access_peer_requests_total": float64(len(federation.Endings)),
		"crypto_broker_gateway_key_access_peer_request_duration_seconds": 1, // the peer has answered only one of them
	} {
		if found[name] != expected {
			t.Errorf("%s: found %v, expected %v", name, found[name], expected)
		}
	}
}
