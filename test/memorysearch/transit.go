// SPDX-License-Identifier: Apache-2.0

package memorysearch

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Transit starts a server that answers as the engine Transit of OpenBao for the key "kek", and returns its
// URL. It gives back what it was given. It ends with the test.
func Transit(t *testing.T) string {
	t.Helper()
	var mu sync.Mutex
	var plaintexts []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var body struct{ Plaintext, Ciphertext string }
		_ = json.NewDecoder(r.Body).Decode(&body) // requests that read the key have no body
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
