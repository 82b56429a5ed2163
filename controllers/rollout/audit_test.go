// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
)

func TestEachStepOfARolloutHasARecord(t *testing.T) {
	var text bytes.Buffer
	log, err := audit.New(audit.Options{Output: audit.Stream(&text), Signer: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r := &reconciler{audit: log}
	at := func(phase string, step, weight int32) *v1alpha1.RolloutStatus {
		return &v1alpha1.RolloutStatus{Phase: phase, Digest: "sha256:9f", Attempt: "9f-1", Step: step, Weight: weight, Message: "said"}
	}
	orders := object{Object: &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}}
	everywhere := object{Object: &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "everywhere"}}}
	for _, change := range []struct {
		of          object
		before, now *v1alpha1.RolloutStatus
	}{
		{orders, nil, at("Progressing", 1, 10)},
		{orders, at("Progressing", 1, 10), at("Progressing", 1, 10)}, // only the message changed
		{orders, at("Progressing", 1, 10), at("Paused", 1, 10)},
		{orders, at("Paused", 1, 10), at("Progressing", 2, 50)},
		{orders, at("Progressing", 2, 50), at("Failed", 2, 50)},
		{orders, at("Failed", 2, 50), nil},
		{everywhere, at("Progressing", 2, 50), at("Complete", 2, 100)},
		{everywhere, at("Complete", 2, 100), nil},
	} {
		r.recordChange(change.of, change.before, change.now)
	}
	log.Close()
	var said []string
	for line := range strings.Lines(text.String()) {
		var f map[string]any
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		if f["event"] == "rollout" {
			said = append(said, fmt.Sprint(f["object.kind"], " ", f["k8s.namespace.name"], " ", f["object.name"], " ", f["result"], " ", f["rollout.step"], " ", f["rollout.weight"], " ", f["profile.digest"], " ", f["reason"]))
		}
	}
	want := []string{
		"CryptoProfile shop orders progressing 1 10 sha256:9f said",
		"CryptoProfile shop orders paused 1 10 sha256:9f said",
		"CryptoProfile shop orders progressing 2 50 sha256:9f said",
		"CryptoProfile shop orders failed 2 50 sha256:9f said",
		"CryptoProfile shop orders withdrawn 2 50 sha256:9f the change was taken back, or replaces nothing any more",
		"ClusterCryptoProfile <nil> everywhere complete 2 100 sha256:9f said",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("the records differ (-want +got):\n%s", diff)
	}
}
