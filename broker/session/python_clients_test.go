// SPDX-License-Identifier: Apache-2.0

//go:build clients

package session

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// TestAClientInPythonMakesTheSameBytes compares with the package cryptography, which computes with
// OpenSSL.
func TestAClientInPythonMakesTheSameBytes(t *testing.T) {
	folder, err := environment.PythonPackage{Name: "cryptography", Version: "48.0.0"}.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for version, clientID := range versions {
		t.Run(version, func(t *testing.T) {
			s, now := newStore(t)
			p := policy(t, "")
			own, err := ecdh.P256().GenerateKey(rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			text := base64.StdEncoding.EncodeToString
			begun, err := s.Begin(t.Context(), theOwner, p, Init{
				KeyAgreement: "ECDH_P256", ClientPublicKey: text(own.PublicKey().Bytes()), TTL: time.Hour, Nonce: "n",
				Timestamp: strconv.FormatInt(now.read().UnixMilli(), 10), ClientID: clientID,
			})
			if err != nil {
				t.Fatal(err)
			}
			var key [keySize]byte
			if s.find(theOwner, p, begun.ID, &key) == nil {
				t.Fatal("there is no session")
			}
			reply, err := s.Seal(t.Context(), theOwner, p, begun.ID, "/transaction/purchase", []byte("paid"))
			if err != nil {
				t.Fatal(err)
			}
			// The client of the other tests encrypts what Python shall make.
			c := &client{id: begun.ID, clientID: clientID, key: key[:], clock: now}
			want := c.requestTo("/transaction/purchase", noon, "5d0c8a52-0a5b-4b52-8a55-0e3e3f5b1a01", "buy")
			iv := want.Body[:min(12, len(want.Body))]
			if clientID == "" {
				if iv, err = base64.StdEncoding.DecodeString(want.IV); err != nil {
					t.Fatal(err)
				}
			}
			input, err := json.Marshal(map[string]any{
				"scalar": hex.EncodeToString(own.Bytes()), "serverPublicKey": begun.ServerPublicKey, "id": begun.ID, "clientId": clientID,
				"path": "/transaction/purchase", "timestamp": strconv.FormatInt(noon.UnixMilli(), 10), "nonce": "5d0c8a52-0a5b-4b52-8a55-0e3e3f5b1a01",
				"iv": text(iv), "plaintext": "buy", "reply": reply,
			})
			if err != nil {
				t.Fatal(err)
			}
			python := exec.CommandContext(t.Context(), "python3", "testdata/client.py")
			python.Env, python.Stdin = append(os.Environ(), "PYTHONPATH="+folder), bytes.NewReader(input)
			var stderr bytes.Buffer
			python.Stderr = &stderr
			output, err := python.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			var made struct {
				Key     []byte
				Request Request
				Opened  string
			}
			if err := json.Unmarshal(output, &made); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(made.Key, key[:]) {
				t.Error("Python derives another key")
			}
			if !reflect.DeepEqual(made.Request, want) {
				t.Errorf("Python makes the request\n%+v\nwant\n%+v", made.Request, want)
			}
			if made.Opened != "paid" {
				t.Errorf("Python opens %q", made.Opened)
			}
			if opened, err := s.Open(t.Context(), theOwner, p, &made.Request); err != nil || string(opened.Plaintext) != "buy" {
				t.Errorf("opened %q, %v", opened.Plaintext, err)
			}
		})
	}
}
