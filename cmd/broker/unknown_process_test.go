// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"slices"
	"strings"
	"testing"
)

func TestAVariableThatIsMisspeltIsToldWithASuggestion(t *testing.T) {
	at := newPlace(t, "sha-256")
	broker := startWith(t, environment(
		"CRYPTO_BROKER_PROFILES_DIR="+at.profiles, "CRYPTO_BROKER_SOCKET_DIR="+at.sockets,
		"CRYPTO_BROKER_LOG_LEVELL=debug", "CRYPTO_BROKER_COLOUR=secret-blue",
		// A known variable, and the variables that a kubelet sets for the Services of the namespace.
		"CRYPTO_BROKER_REQUIRE_FIPS=false",
		"CRYPTO_BROKER_SERVICE_HOST=10.0.0.1", "CRYPTO_BROKER_SERVICE_PORT=443", "CRYPTO_BROKER_SERVICE_PORT_HTTPS=443", "CRYPTO_BROKER_PORT=tcp://10.0.0.1:443",
		"CRYPTO_BROKER_PORT_443_TCP=tcp://10.0.0.1:443", "CRYPTO_BROKER_OPERATOR_WEBHOOK_PORT_443_TCP_ADDR=10.0.0.1",
	))
	broker.listening()
	var told []string
	for _, line := range broker.log() {
		if message, _ := line["msg"].(string); strings.HasPrefix(message, "an environment variable begins with CRYPTO_BROKER_ but the broker does not know it") {
			name, _ := line["variable"].(string)
			suggestion, _ := line["suggestion"].(string)
			told = append(told, name+" "+suggestion)
			if line["level"] != "WARN" {
				t.Errorf("%v", line)
			}
			for _, value := range line {
				if text, _ := value.(string); strings.Contains(text, "secret-blue") {
					t.Errorf("the value is told: %v", line)
				}
			}
		}
	}
	if want := []string{"CRYPTO_BROKER_COLOUR ", "CRYPTO_BROKER_LOG_LEVELL CRYPTO_BROKER_LOG_LEVEL"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
