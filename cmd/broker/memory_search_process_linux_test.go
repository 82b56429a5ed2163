// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// transit answers as the engine Transit of OpenBao for one key. It gives back what it was given.
func transit(t *testing.T) string {
	t.Helper()
	var mu sync.Mutex
	var plaintexts []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var body struct{ Plaintext, Ciphertext string }
		_ = json.NewDecoder(r.Body).Decode(&body) // questions for the key have none
		switch {
		case strings.HasSuffix(r.URL.Path, "/keys/kek"):
			_, _ = io.WriteString(w, `{"data": {"type": "aes256-gcm96", "latest_version": 1, "keys": {"1": 1}}}`)
		case strings.HasSuffix(r.URL.Path, "/encrypt/kek"):
			plaintexts = append(plaintexts, body.Plaintext)
			ciphertext := fmt.Appendf(nil, "%060d", len(plaintexts)-1) // as long as a real one
			_, _ = fmt.Fprintf(w, `{"data": {"ciphertext": "vault:v1:%s"}}`, base64.StdEncoding.EncodeToString(ciphertext))
		case strings.HasSuffix(r.URL.Path, "/decrypt/kek"):
			ciphertext, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(body.Ciphertext, "vault:v1:"))
			n := 0
			if _, err := fmt.Sscanf(string(ciphertext), "%d", &n); err != nil || n >= len(plaintexts) {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			_, _ = fmt.Fprintf(w, `{"data": {"plaintext": %q}}`, plaintexts[n])
		default:
			_, _ = io.WriteString(w, `{"initialized": true, "version": "2"}`)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// region is writable memory of a process.
type region struct {
	from, to int64
	name     string
	locked   bool
}

// regions returns the writable memory of a process, as far as it is backed by pages.
func regions(t *testing.T, pid int) []region {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	var all []region
	writable := false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		var r region
		var access string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &r.from, &r.to, &access); n == 3 {
			if writable = strings.HasPrefix(access, "rw"); writable {
				if fields := strings.Fields(line); len(fields) > 5 {
					r.name = fields[5]
				}
				all = append(all, r)
			}
		} else if size := 0; writable && strings.HasPrefix(line, "Locked:") {
			_, _ = fmt.Sscanf(line, "Locked: %d", &size)
			all[len(all)-1].locked = size > 0
		}
	}
	return all
}

// search returns how many of the secrets are in locked memory of a process, and which are in other
// memory, with their numbers.
func search(t *testing.T, pid int, secrets [][]byte) (locked int, elsewhere map[string]int) {
	t.Helper()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = memory.Close() }() // it was only read
	elsewhere = map[string]int{}
	found := map[int]bool{}
	for _, r := range regions(t, pid) {
		const step, overlap = 1 << 20, 256
		buffer := make([]byte, step+overlap)
		for at := r.from; at < r.to; at += step {
			n, err := memory.ReadAt(buffer[:min(step+overlap, r.to-at)], at)
			if err != nil && n == 0 {
				continue // pages of a device
			}
			for i, secret := range secrets {
				count := bytes.Count(buffer[:n], secret)
				if count > 0 && r.locked {
					found[i] = true
				} else if count > 0 {
					elsewhere[fmt.Sprintf("secret %d in %s", i, r.name)] += count
				}
			}
		}
	}
	return len(found), elsewhere
}

// forms returns data keys and how the key manager writes them.
func forms(dataKeys [][]byte) (all [][]byte) {
	for _, dataKey := range dataKeys {
		all = append(all, dataKey, []byte(base64.StdEncoding.EncodeToString(dataKey)[:40]))
	}
	return all
}

// Others than root cannot read the memory of a broker, which is what another test shows.
//
// One broker wraps data keys and another one unwraps them, because what gRPC has received in a
// request stays in its buffers. gRPC and net/http have a buffer for each connection, too, where a
// message is until later ones overwrite it. So the last data keys are not looked for. A frame
// before a reply moves it to a place where later replies may not reach, which is why a few others
// may be found.
func TestDataKeysAreNotLeftInMemoryOnceTheyAreForgotten(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	const wrapping = "- Name: P\n  API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: bao/kek}]}}\n"
	at := newPlace(t, "")
	at.write(wrapping)
	dir := filepath.Join(filepath.Dir(at.profiles), "providers")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "bao"), 0o700), os.WriteFile(filepath.Join(dir, "bao", "token"), []byte("s.test"), 0o600),
		os.WriteFile(filepath.Join(dir, "Providers.yaml"), []byte("Providers: [{Name: bao, Type: openbao, Endpoints: ['"+transit(t)+"'], OpenBao: {Engine: transit}}]"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const count, last, few = 24, 8, 3
	var dataKeys, wrapped [][]byte
	wraps := start(t, at.args("--key-providers-dir", dir)...)
	wraps.listening()
	client := v1.NewCryptoServiceClient(connect(t, at.socket("")))
	for range count {
		dataKey := make([]byte, 32)
		_, _ = rand.Read(dataKey) // which never fails
		reply, err := client.WrapKey(t.Context(), &v1.WrapKeyRequest{Profile: "P", KeyId: "bao/kek", DataKey: dataKey})
		if err != nil {
			t.Fatal(err)
		}
		dataKeys, wrapped = append(dataKeys, dataKey), append(wrapped, reply.GetWrappedKey())
	}
	wraps.stop()

	broker := start(t, at.args("--key-providers-dir", dir, "--log-level=debug")...)
	address := broker.listening()
	client = v1.NewCryptoServiceClient(connect(t, at.socket("")))
	for i := range count {
		reply, err := client.UnwrapKey(t.Context(), &v1.UnwrapKeyRequest{Profile: "P", WrappedKey: wrapped[i]})
		if err != nil || !bytes.Equal(reply.GetDataKey(), dataKeys[i]) {
			t.Fatalf("data key %d: %v", i, err)
		}
	}
	pid, earlier := broker.cmd.Process.Pid, dataKeys[:count-last]
	if kept, elsewhere := search(t, pid, earlier); kept != count-last || len(elsewhere) > few {
		t.Errorf("%d of %d data keys that are kept are in locked memory, and in other memory are %v", kept, count-last, elsewhere)
	}
	at.write(wrapping + "- Name: Q\n  API: {HashData: {HashAlg: sha-256}}\n")
	for end := time.Now().Add(waitLimit); ; <-time.After(20 * time.Millisecond) {
		kept, elsewhere := search(t, pid, forms(earlier))
		if kept == 0 && len(elsewhere) <= few {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after the profiles have changed, %d data keys are in locked memory, and in other memory are %v", kept, elsewhere)
		}
	}
	_, metrics := get(t, address, "/metrics")
	said := fmt.Sprint(broker.log()) + metrics
	for i, dataKey := range dataKeys {
		for _, form := range []string{string(dataKey), base64.StdEncoding.EncodeToString(dataKey), hex.EncodeToString(dataKey)} {
			if strings.Contains(said, form) {
				t.Errorf("data key %d is in the log or in the metrics", i)
			}
		}
	}
}
