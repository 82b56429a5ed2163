// SPDX-License-Identifier: Apache-2.0

//go:build interop

package openssl_test

import (
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// "make interop" runs the whole suite with OpenSSL's FIPS provider.
func TestTheSuiteRunsWithTheFIPSProviderAlone(t *testing.T) {
	client, err := openssl.New(openssl.Config{RequireFIPS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	module := client.Module()
	if !module.FIPS || !module.FIPSProvider || module.FIPSProviderName != "OpenSSL FIPS Provider" || module.FIPSProviderVersion != "3.1.2" {
		t.Errorf("OpenSSL says %+v, expected its FIPS provider 3.1.2", module)
	}
}
