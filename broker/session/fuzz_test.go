// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/fuzzmemory"
)

// FuzzRequests replaces with arbitrary texts the headers and the body of requests that are
// authentic. They are refused with the one error, or open to what the client sent.
func FuzzRequests(f *testing.F) {
	const fieldCount = 12
	for _, clientID := range versions {
		for field := range uint8(fieldCount) {
			f.Add(clientID != "", field, "")
			f.Add(clientID != "", field, "/a/%2e%2e/b|c")
			f.Add(clientID != "", field, "1795435200000.5d0c8a52-0a5b-4b52-8a55-0e3e3f5b1a01")
			f.Add(clientID != "", field, "QUJDREVGR0hJSktM\r\n")
		}
	}
	f.Add(false, uint8(1), "/transaction/./purchase")
	f.Add(false, uint8(6), strings.Repeat("A", 1<<16))
	s, now := newStore(f)
	p := policy(f, "")
	first, second := connect(f, s, now, p, ""), connect(f, s, now, p, "shop-1")
	f.Fuzz(func(t *testing.T, v2 bool, field uint8, text string) {
		c := first
		if v2 {
			c = second
		}
		r := c.requestTo("/transaction/purchase", noon, "the-nonce", "text")
		var body string
		fields := []*string{
			&r.Method, &r.Path, &r.Kid, &r.EncAlg, &r.IV, &r.Tag, &r.AAD, &r.Nonce, &r.Timestamp, &r.IdempotencyKey, &r.ClientID, &body,
		}
		changed := fields[int(field)%fieldCount]
		*changed = text
		if changed == &body {
			r.Body = []byte(text)
		}
		before := fuzzmemory.Allocated()
		opened, err := s.Open(t.Context(), theOwner, p, &r)
		if took := fuzzmemory.Allocated() - before; took > fuzzmemory.Base+uint64(8*len(text)) {
			t.Errorf("took %d bytes for a text of %d", took, len(text))
		}
		switch {
		case err == nil && string(opened.Plaintext) == "text" && (opened.Path == "/transaction/purchase" || v2):
			found := s.sessions[c.id]
			found.mu.Lock()
			found.share.nonces.Add(-int64(found.nonces.count))
			found.nonces = nonces{} // the next request has the same nonce
			found.mu.Unlock()
		case err != ErrRefused: //nolint:errorlint // it has to be this error and no other
			t.Errorf("%v, %q", err, opened.Plaintext)
		}
	})
}
