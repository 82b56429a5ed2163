// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

func TestAKeyThatCannotSignRecordsEndsTheStart(t *testing.T) {
	pemOf := func(key any) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		text []byte // nil for no file
		want string
	}{
		"no file":             {nil, "no such file"},
		"no key":              {[]byte("hello"), "has no complete PEM block, expected a private key in PEM"},
		"an RSA key":          {pemOf(rsaKey), "the key of the audit log is neither Ed25519 nor ECDSA"},
		"a curve of 224 bits": {pemOf(small), "the key of the audit log is on a curve of 224 bits, expected at least 256"},
	} {
		t.Run(name, func(t *testing.T) {
			var c config
			c.audit.Key = filepath.Join(t.TempDir(), "audit.key")
			if test.text != nil {
				if err := os.WriteFile(c.audit.Key, test.text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, _, err := c.useAudit(&bytes.Buffer{}, telemetry.NewMetrics("test"), slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, expected %q in it", err, test.want)
			}
		})
	}
}
