// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/catalogue"
)

// BenchmarkCertificate compares what a cache of issuers would save, the reading
// of key and certificate, with a whole certificate for P-256 under P-384.
func BenchmarkCertificate(b *testing.B) {
	files := newIssuing(b)
	set, problems := profile.Compile(profile.FileName, catalogue.Profiles)
	if err := problems.Err(); err != nil {
		b.Fatal(err)
	}
	p, _ := set.Lookup("Default")
	read := func(b *testing.B) engine.Issuer {
		certificate, err := engine.ParseCertificate("caCert", []byte(files.certificate))
		if err != nil {
			b.Fatal(err)
		}
		key, err := keys.ParsePrivateKey([]byte(files.key), algorithm.MaxRSASize)
		if err != nil {
			b.Fatal(err)
		}
		return engine.Issuer{Key: key, Certificate: certificate}
	}
	b.Run("reading the issuer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			read(b)
		}
	})
	b.Run("issuing", func(b *testing.B) {
		issuer, request := read(b), engine.CertificateRequest{CSR: []byte(files.csr)}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := engine.IssueCertificate(p.Certificate(), issuer, request, time.Now()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
