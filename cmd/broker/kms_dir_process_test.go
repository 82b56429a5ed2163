// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestABrokerReadsTheFileThatAReleasedProfileNames(t *testing.T) {
	const token = "s.of-the-test"
	manager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Vault-Token") != token || r.URL.Path != "/v1/mykeys/data/app" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, `{"data": {"data": {"key": "`+strings.Repeat("0f", 32)+`"}, "metadata": {"version": 1}}}`)
	}))
	t.Cleanup(manager.Close)
	at := newPlace(t, "")
	at.write(strings.Replace(strings.ReplaceAll(encrypting, ", KeyIds: [{Id: app}]", ""), "  API:", "  KMS: {Client: openbao, Config: openbao.yaml, Cache: false}\n  API:", 1))
	dir := filepath.Join(filepath.Dir(at.profiles), "kms")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	broker := start(t, at.args("--kms-dir", dir)...)
	broker.listening()
	conn := connect(t, at.socket(""))
	if _, err := encrypt(t, conn); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("without the file: %v", err)
	}
	problem := broker.logged("a key of a key manager cannot be used", 1)
	if text, _ := problem["error"].(string); !strings.Contains(text, "the file openbao.yaml of the directory --kms-dir cannot be read: ") {
		t.Errorf("logged %v", problem)
	}
	path := filepath.Join(dir, "openbao.yaml")
	for _, err := range []error{
		os.WriteFile(path+".new", []byte("address: "+manager.URL+"\ntoken: "+token+"\nmount: mykeys\n"), 0o600), os.Rename(path+".new", path),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(waitLimit); ; <-time.After(20 * time.Millisecond) {
		sealed, err := encrypt(t, conn)
		if err == nil {
			if !decrypts(t, conn, sealed) {
				t.Error("what was encrypted is not decrypted")
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("with the file: %v", err)
		}
	}
}
