// SPDX-License-Identifier: Apache-2.0

//go:build interop

package openssl_test

import (
	"regexp"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
)

func TestABrokerTellsWhichFIPSProviderMakesItsConnections(t *testing.T) {
	want := regexp.MustCompile(`(?m)^TLS of connections to others: OpenSSL 3\.\d+\.\d+ .*, OpenSSL FIPS Provider 3\.1\.2, FIPS 140-3 mode on$`)
	output, succeeded := run(t, []string{"CRYPTO_BROKER_TLS_PROVIDER=openssl"}, "broker", "version")
	if !succeeded || !want.MatchString(output) {
		t.Errorf("got %s", output)
	}
}

func TestTheFIPSProviderOfOpenSSLIsWhatABrokerRequires(t *testing.T) {
	if err := tlsprovider.Use(tlsprovider.OpenSSL, true); err != nil {
		t.Error(err)
	}
}
