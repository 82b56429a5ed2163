// SPDX-License-Identifier: Apache-2.0

package blob_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine/wrap"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/blob"
)

// full returns a header with all fields.
func full() blob.Header {
	return blob.Header{
		Algorithm: algorithm.WrapAESGCM, Provider: "vault", KeyID: "orders", KeyVersion: "7",
		ContextHash: blob.HashContext([]byte("tenant=a")),
	}
}

// plain returns a header without a version of the key and without a context.
func plain() blob.Header {
	return blob.Header{Algorithm: algorithm.WrapAESKW, Provider: "files", KeyID: "k"}
}

// The files never change. Blobs that were stored have to stay readable.
func TestVersion1IsWhatItWas(t *testing.T) {
	for name, header := range map[string]blob.Header{"with-context": full(), "without-context": plain()} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("testdata/version-1-" + name + ".hex")
			if err != nil {
				t.Fatal(err)
			}
			golden, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
			if err != nil {
				t.Fatal(err)
			}
			wrapped := []byte("wrapped key")
			encoded, err := blob.Encode(header, wrapped)
			if err != nil || !bytes.Equal(encoded, golden) {
				t.Errorf("found %x and the error %v, want %x", encoded, err, golden)
			}
			parsed, rest, err := blob.Parse(golden)
			if err != nil || !reflect.DeepEqual(parsed, header) || !bytes.Equal(rest, wrapped) {
				t.Errorf("found %+v, %q and the error %v", parsed, rest, err)
			}
		})
	}
}

func TestABlobThatIsNotCanonicalIsRefused(t *testing.T) {
	golden, err := blob.Encode(full(), []byte("wrapped key"))
	if err != nil {
		t.Fatal(err)
	}
	headerSize := len(golden) - len("wrapped key")
	replace := func(at int, by ...byte) []byte {
		changed := bytes.Clone(golden)
		copy(changed[at:], by)
		return changed
	}
	for sentence, test := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":                           {nil, "is not a wrapped key of a broker"},
		"another format":                    {[]byte("vault:v1:AAAA"), "is not a wrapped key of a broker"},
		"another version":                   {replace(3, 2), "is a wrapped key of version 2, expected version 1"},
		"the version alone":                 {golden[:4], "ends before the wrapped key, expected more bytes"},
		"a header without a wrapped key":    {golden[:headerSize], "ends before the wrapped key, expected more bytes"},
		"a part of the header":              {golden[:headerSize-1], "ends before the wrapped key, expected more bytes"},
		"an unknown algorithm":              {replace(4, 200), "is not a valid wrapped key: blob: found the wrapping algorithm 200, expected a known one"},
		"no algorithm":                      {replace(4, 0), "is not a valid wrapped key: blob: found the wrapping algorithm 0, expected a known one"},
		"a field that is longer than all":   {replace(5, 255), "ends before the wrapped key, expected more bytes"},
		"a control byte":                    {replace(6, '\n'), "is not a valid wrapped key: blob: the name of the provider has the byte 0x0a, expected printable ASCII without spaces"},
		"no provider":                       {[]byte("CBK\x01\x03\x00\x01k\x00\x00wrapped"), "is not a valid wrapped key: blob: the name of the provider has 0 bytes, expected 1 to 64"},
		"a long provider":                   {[]byte("CBK\x01\x03\x41" + strings.Repeat("p", 65) + "\x01k\x00\x00wrapped"), "is not a valid wrapped key: blob: the name of the provider has 65 bytes, expected 1 to 64"},
		"no key":                            {[]byte("CBK\x01\x03\x01p\x00\x00\x00wrapped"), "is not a valid wrapped key: blob: the id of the key has 0 bytes, expected 1 to 255"},
		"a hash of another size":            {[]byte("CBK\x01\x03\x01p\x01k\x00\x02hhwrapped"), "is not a valid wrapped key: blob: the hash of the context has 2 bytes, expected none or 32"},
		"a context that nothing binds":      {replace(4, byte(algorithm.WrapAESKW)), "is not a valid wrapped key: the wrapping algorithm cannot bind a key to a context, expected no context"},
		"a blob that is larger than 16 KiB": {append(bytes.Clone(golden), make([]byte, blob.MaxSize)...), "has 16448 bytes, expected at most 16384"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, wrapped, err := blob.Parse(test.data)
			if wrapped != nil || err == nil || err.Error() != test.want {
				t.Errorf("found %q and the error %q, want %q", wrapped, err, test.want)
			}
		})
	}
}

func TestAHeaderThatCannotBeReadIsNotWritten(t *testing.T) {
	for sentence, change := range map[string]func(*blob.Header){
		"no algorithm":              func(h *blob.Header) { h.Algorithm = 0 },
		"no provider":               func(h *blob.Header) { h.Provider = "" },
		"a long provider":           func(h *blob.Header) { h.Provider = strings.Repeat("p", 65) },
		"no key":                    func(h *blob.Header) { h.KeyID = "" },
		"a long key":                func(h *blob.Header) { h.KeyID = strings.Repeat("k", 256) },
		"a key with a space":        func(h *blob.Header) { h.KeyID = "a key" },
		"a key beyond ASCII":        func(h *blob.Header) { h.KeyID = "schlüssel" },
		"a long version":            func(h *blob.Header) { h.KeyVersion = strings.Repeat("7", 256) },
		"half a hash":               func(h *blob.Header) { h.ContextHash = h.ContextHash[:16] },
		"a context nothing binds":   func(h *blob.Header) { h.Algorithm = algorithm.WrapAESKWP },
		"an algorithm without name": func(h *blob.Header) { h.Algorithm = 255 },
	} {
		t.Run(sentence, func(t *testing.T) {
			header := full()
			change(&header)
			if encoded, err := blob.Encode(header, []byte("wrapped key")); encoded != nil || err == nil {
				t.Errorf("found %q and the error %v", encoded, err)
			}
		})
	}
	for _, wrapped := range [][]byte{nil, make([]byte, blob.MaxSize)} {
		if encoded, err := blob.Encode(full(), wrapped); encoded != nil || err == nil {
			t.Errorf("a wrapped key of %d bytes: found %d bytes and the error %v", len(wrapped), len(encoded), err)
		}
	}
}

func TestAContextIsChecked(t *testing.T) {
	for sentence, test := range map[string]struct {
		header  blob.Header
		context string
		want    error
	}{
		"the same context":                     {full(), "tenant=a", nil},
		"another context":                      {full(), "tenant=b", blob.ErrContext},
		"no context where there was one":       {full(), "", blob.ErrContext},
		"no context where there was none":      {plain(), "", nil},
		"a context where there was none":       {plain(), "tenant=a", blob.ErrContext},
		"the hash of the context as a context": {full(), string(full().ContextHash), blob.ErrContext},
	} {
		t.Run(sentence, func(t *testing.T) {
			if err := test.header.CheckContext([]byte(test.context)); !errors.Is(err, test.want) {
				t.Errorf("found the error %v, want %v", err, test.want)
			}
		})
	}
}

// Anybody who stores a blob can change its header. This has to fail in the cryptography.
func TestAChangedHeaderDoesNotUnwrap(t *testing.T) {
	key, err := wrap.NewAES(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	header := full()
	wrapped, err := key.Wrap(header.Algorithm, make([]byte, 32), header.Additional())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := key.Unwrap(header.Algorithm, wrapped, header.Additional()); err != nil {
		t.Fatal(err)
	}
	for sentence, change := range map[string]func(*blob.Header){
		"provider":            func(h *blob.Header) { h.Provider = "other" },
		"key":                 func(h *blob.Header) { h.KeyID = "other" },
		"version":             func(h *blob.Header) { h.KeyVersion = "8" },
		"context":             func(h *blob.Header) { h.ContextHash = blob.HashContext([]byte("tenant=b")) },
		"no context":          func(h *blob.Header) { h.ContextHash = nil },
		"part of another one": func(h *blob.Header) { h.KeyID, h.KeyVersion = "order", "s7" },
	} {
		t.Run(sentence, func(t *testing.T) {
			changed := full()
			change(&changed)
			if err := changed.Check(); err != nil {
				t.Fatal(err)
			}
			if _, err := key.Unwrap(changed.Algorithm, wrapped, changed.Additional()); !errors.Is(err, wrap.ErrUnwrap) {
				t.Errorf("found the error %v, want ErrUnwrap", err)
			}
		})
	}
	if additional := plain().Additional(); additional != nil {
		t.Errorf("found additional data of %d bytes for an algorithm that has none", len(additional))
	}
}

// verdicts are the words of the page for the verdicts of FIPS 140-3.
var verdicts = map[algorithm.Approval]string{
	algorithm.Approved: "approved", algorithm.NotApproved: "not approved", algorithm.NotInModule: "not in the module",
}

func TestThePageHasEachAlgorithm(t *testing.T) {
	text, err := os.ReadFile("../../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	page := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) == 6 {
			page[strings.TrimPrefix(cells[0], "| ")] = cells
		}
	}
	for i, name := range algorithm.Wrappings() {
		with := algorithm.Wrapping(i + 1)
		cells := page[fmt.Sprint(i+1)]
		if cells == nil {
			t.Errorf("docs/formats.md has no row with the number %d for %s", i+1, name)
			continue
		}
		authenticated := map[bool]string{true: "yes", false: "no"}[with.BindsContext()]
		if cells[1] != "`"+name+"`" || !strings.HasPrefix(cells[2], string(with.Key())) || cells[4] != authenticated || cells[5] != verdicts[with.Approval()]+" |" {
			t.Errorf("docs/formats.md has %q, expected %s, %s, %s, %s", cells, name, with.Key(), authenticated, verdicts[with.Approval()])
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, header := range []blob.Header{full(), plain()} {
		encoded, err := blob.Encode(header, []byte("wrapped key"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		header, wrapped, err := blob.Parse(data)
		if err != nil {
			return
		}
		again, err := blob.Encode(header, wrapped)
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("a blob has two encodings, %x and %x: %v", data, again, err)
		}
	})
}
