// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	stdhpke "crypto/hpke"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudflare/circl/hpke"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
)

// hpkeVector is a vector of RFC 9180, appendix A, in the form that its authors publish.
type hpkeVector struct {
	Mode    int    `json:"mode"`
	KEM     uint16 `json:"kem_id"`
	KDF     uint16 `json:"kdf_id"`
	AEAD    uint16 `json:"aead_id"`
	Info    string `json:"info"`
	Private string `json:"skRm"`
	Public  string `json:"pkRm"`
	Share   string `json:"enc"`
	Exports []struct {
		Context string `json:"exporter_context"`
		Length  int    `json:"L"`
		Value   string `json:"exported_value"`
	} `json:"exports"`
}

// hpkeVectors returns the vectors that come with CIRCL.
func hpkeVectors(t *testing.T) (all []hpkeVector) {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cloudflare/circl").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(folder)), "hpke", "testdata", "vectors_rfc9180_*.json.gz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("found %v, expected one file: %v", files, err)
	}
	file, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(plain).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	decoded, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

// Sessions use HPKE in base mode with HKDF-SHA256, and of its contexts the exporter alone.
func TestTheSecretsOfSessionsAreThoseOfTheVectorsOfRFC9180(t *testing.T) {
	const base, hkdfSHA256, exportOnly = 0, 0x0001, 0xffff
	checked := 0
	for _, vector := range hpkeVectors(t) {
		if vector.Mode != base || vector.KEM != uint16(algorithm.SessionHPKEP256.KEM()) || vector.KDF != hkdfSHA256 || vector.AEAD != exportOnly {
			continue
		}
		kem, err := stdhpke.NewKEM(vector.KEM)
		if err != nil {
			t.Fatal(err)
		}
		own, err := kem.NewPrivateKey(unhex(t, vector.Private))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(own.PublicKey().Bytes(), unhex(t, vector.Public)) {
			t.Error("the public key is another one")
		}
		recipient, err := stdhpke.NewRecipient(unhex(t, vector.Share), own, stdhpke.HKDFSHA256(), stdhpke.ExportOnly(), unhex(t, vector.Info))
		if err != nil {
			t.Fatal(err)
		}
		for _, export := range vector.Exports {
			got, err := recipient.Export(string(unhex(t, export.Context)), export.Length)
			if err != nil || hex.EncodeToString(got) != export.Value {
				t.Errorf("the context %q: exported %x, %v, want %s", export.Context, got, err, export.Value)
			}
			checked++
		}
	}
	if checked < 3 {
		t.Errorf("%d values were checked, expected 3 at least", checked)
	}
}

// CIRCL has no export-only contexts, whose identifier changes the values alone. So both sides take
// AES-256-GCM here.
func TestCIRCLAndTheBrokerExportTheSameForEachAgreementOfSessions(t *testing.T) {
	for _, protocol := range []algorithm.Session{algorithm.SessionHPKEP256, algorithm.SessionHPKEXWing} {
		t.Run(protocol.String(), func(t *testing.T) {
			suite := hpke.NewSuite(hpke.KEM(protocol.KEM()), hpke.KDF_HKDF_SHA256, hpke.AEAD_AES256GCM)
			scheme := hpke.KEM(protocol.KEM()).Scheme()
			public, private, err := scheme.GenerateKeyPair()
			if err != nil {
				t.Fatal(err)
			}
			encoded, err := public.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			kem, err := stdhpke.NewKEM(uint16(protocol.KEM()))
			if err != nil {
				t.Fatal(err)
			}
			peer, err := kem.NewPublicKey(encoded)
			if err != nil {
				t.Fatal(err)
			}
			info := make([]byte, 100)
			_, _ = rand.Read(info)
			share, sender, err := stdhpke.NewSender(peer, stdhpke.HKDFSHA256(), stdhpke.AES256GCM(), info)
			if err != nil {
				t.Fatal(err)
			}
			want, err := sender.Export("secret", 32)
			if err != nil {
				t.Fatal(err)
			}
			receiver, err := suite.NewReceiver(private, info)
			if err != nil {
				t.Fatal(err)
			}
			opener, err := receiver.Setup(share)
			if err != nil {
				t.Fatal(err)
			}
			if got := opener.Export([]byte("secret"), 32); !bytes.Equal(got, want) {
				t.Errorf("CIRCL exports %x, crypto/hpke %x", got, want)
			}
		})
	}
}
