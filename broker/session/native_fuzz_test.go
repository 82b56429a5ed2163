// SPDX-License-Identifier: Apache-2.0

package session

import "testing"

// FuzzNativeRequests replaces with arbitrary texts the headers and the body of authentic requests
// of a native session. They are refused with the one error, or open to what the client sent. None of them
// gives the session another key.
func FuzzNativeRequests(f *testing.F) {
	const fieldCount = 7
	for field := range uint8(fieldCount) {
		for _, text := range []string{"", "/a/%2e%2e/b|c", "1795435200000", "1.1", "2.1", "999999999999999.999999999999999", "1.1000000000000000", "01.1", "1.+1"} {
			f.Add(field, text)
		}
	}
	f.Add(uint8(1), "/transaction/./purchase")
	s, now := newStore(f)
	p := nativePolicy(f, "")
	c := connectNative(f, s, now, p, "HPKE_P256")
	f.Fuzz(func(t *testing.T, field uint8, text string) {
		r := c.request(1, "text")
		var body string
		fields := []*string{&r.Method, &r.Path, &r.Kid, &r.EncAlg, &r.Timestamp, &r.Sequence, &body}
		changed := fields[int(field)%fieldCount]
		*changed = text
		if changed == &body {
			r.Body = []byte(text)
		}
		if opened, err := s.Rekey(theOwner, p, &r); err != ErrRefused { //nolint:errorlint // it has to be this error and no other
			t.Errorf("another key: %+v, %v", opened, err)
		}
		opened, err := s.Open(t.Context(), theOwner, p, &r)
		switch {
		case err == nil && string(opened.Plaintext) == "text" && opened.Path == "/transaction/purchase" && opened.Sequence == "1.1":
			s.sessions[c.id].numbers = &numbers{} // the next request has the same number
			s.sessions[c.id].opened = 0
		case err != ErrRefused: //nolint:errorlint // it has to be this error and no other
			t.Errorf("%v, %q", err, opened.Plaintext)
		}
	})
}
