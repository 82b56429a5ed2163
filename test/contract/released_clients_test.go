// SPDX-License-Identifier: Apache-2.0

//go:build releasedclients

package contract

import (
	"path/filepath"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// TestTheClientsOfReleasesKeepTheirContract runs the cases of each released version with the clients of that version and the broker
// of this checkout.
func TestTheClientsOfReleasesKeepTheirContract(t *testing.T) {
	cache, err := environment.Cache(repository)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CRYPTO_BROKER_CACHE", cache) // the checkouts have none
	found := matrix{}
	names, sources := checkouts(t)
	for _, name := range names {
		v, err := readVersion(ownVersion, sources[name])
		if err != nil {
			t.Fatal(err)
		}
		v.binary = own.binary
		clients := map[string]newDriver{}
		for client, path := range clientPrograms(t, filepath.Join(sources[name], "test", "contract")) {
			clients[client+" "+name] = func(socket string) (driver, error) { return startProgram(path, socket) }
		}
		for client, operations := range tryCases(t, startBroker(t, v), clients) {
			found[client] = operations
		}
	}
	clientsSection.compare(t, versionTable([]string{ownVersion}, map[string]matrix{ownVersion: found}, operationsOf(own.cases)))
}
