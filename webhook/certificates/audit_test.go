// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
)

// recorded returns what the records of a log say, each as the name of the Secret, the result and the
// reason.
func recorded(t *testing.T, text string) (found []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		if record["event"] != "certificate" {
			continue
		}
		if sum, _ := record["certificate.sha256"].(string); len(sum) != 64 || record["k8s.namespace.name"] != "crypto-broker-system" || record["certificate.expiry"] == nil {
			t.Errorf("the record is %s, expected the certificate with its expiry", line)
		}
		said := []string{}
		for _, field := range []string{"object.name", "result", "reason"} {
			if value, ok := record[field].(string); ok {
				said = append(said, value)
			}
		}
		found = append(found, strings.Join(said, " | "))
	}
	return found
}

func TestEachCertificateOfAKeyGatewayHasARecord(t *testing.T) {
	var text bytes.Buffer
	log, err := audit.New(audit.Options{Output: audit.Stream(&text), Signer: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	g := newGateways(t)
	g.issuer.authorities.audit = log
	g.renew()
	g.renew()
	authority := g.secret("key-gateway-ca").DeepCopy()
	for end := g.clock.Now().Add(3 * 365 * 24 * time.Hour); g.clock.Now().Before(end); {
		g.clock.Step(5 * 24 * time.Hour)
		g.renew()
	}
	log.Close()
	said := recorded(t, text.String())
	want := []string{"key-gateway-ca | made | the Secret had none that can be used", "key-gateway-tls | signed | there is no readable certificate with its key"}
	if len(said) < 2 {
		t.Fatalf("the records are %q", said)
	}
	if diff := cmp.Diff(want, said[:2]); diff != "" {
		t.Errorf("the first records differ (-want +got):\n%s", diff)
	}
	for _, later := range []string{"key-gateway-ca | prepared", "key-gateway-ca | rotated", "key-gateway-ca | removed", "key-gateway-tls | signed | two thirds of its time are over"} {
		if !strings.Contains(strings.Join(said, "\n"), later) {
			t.Errorf("no record says %q:\n%s", later, strings.Join(said, "\n"))
		}
	}
	for name, value := range authority.Data {
		if len(value) > 0 && strings.Contains(text.String(), string(value)) {
			t.Errorf("the records have the entry %s of the Secret", name)
		}
	}
}
