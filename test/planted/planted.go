// SPDX-License-Identifier: Apache-2.0

package planted

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// part is the length in bytes of the parts of a secret that Find looks for. Programs may cut texts before they write them, so only
// a part of a secret may be left.
const part = 12

// Secrets are the secrets that a test has planted. Its methods may be called at any time.
type Secrets struct {
	mu sync.Mutex
	// forms are the texts to find, with the names of their secrets.
	forms map[string]string
}

// Text returns a new secret of this many letters and digits, at least 12. [Secrets.Find] reports
// its name.
func (s *Secrets) Text(name string, length int) string {
	text := ""
	for len(text) < length {
		text += rand.Text()
	}
	s.Add(name, []byte(text[:length]))
	return text[:length]
}

// Add also looks for a secret that the test has got elsewhere, of at least 12 bytes.
func (s *Secrets) Add(name string, secret []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forms == nil {
		s.forms = map[string]string{}
	}
	for _, piece := range [][]byte{secret[:part], secret[len(secret)-part:]} {
		for _, form := range forms(piece) {
			s.forms[form] = name
		}
	}
}

// forms returns how a program might write a piece of a secret.
func forms(piece []byte) []string {
	numbers := strings.Trim(fmt.Sprintf("%d", piece), "[]")
	all := []string{
		string(piece), strings.Trim(fmt.Sprintf("%q", piece), `"`), hex.EncodeToString(piece), strings.ToUpper(hex.EncodeToString(piece)),
		numbers, strings.ReplaceAll(numbers, " ", ","), strings.ReplaceAll(numbers, " ", ", "),
	}
	// In base64 the characters depend on what is before the piece. Those at its ends also have bits
	// of the neighbours.
	for before := range 3 {
		padded := append(make([]byte, before), piece...)
		padded = padded[:len(padded)/3*3]
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			text := encoding.EncodeToString(padded)
			all = append(all, text[(before*8+5)/6:])
		}
	}
	return all
}

// Find returns the names of the secrets that a text has, sorted.
func (s *Secrets) Find(text string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]bool{}
	for form, name := range s.forms {
		if strings.Contains(text, form) {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
