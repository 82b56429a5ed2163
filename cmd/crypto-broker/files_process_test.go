// SPDX-License-Identifier: Apache-2.0

//go:build process

package main

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/blob"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
)

// newKeySandbox starts a broker with two wrapping keys.
func newKeySandbox(t *testing.T) *sandbox {
	t.Helper()
	s := newSandbox(t)
	s.write("profiles/Profiles.yaml", `
- Name: Default
  API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: old}, {Id: new}]}}
- Name: New
  API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: new}]}}
`)
	s.write("keys/old.bin", strings.Repeat("o", 32))
	s.write("keys/new.bin", strings.Repeat("n", 32))
	return s.start("--keys-dir", filepath.Join(s.dir, "keys"))
}

func (s *sandbox) read(name string) string {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(content)
}

// names returns the names of the files in a directory.
func (s *sandbox) names(dir string) (names []string) {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, dir))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestAFileComesBackWhenItIsDecrypted(t *testing.T) {
	s := newKeySandbox(t)
	plain := s.write("files/plain", strings.Repeat("4711 boxes\n", 30_000))
	encrypted, again := filepath.Join(s.dir, "files", "encrypted"), filepath.Join(s.dir, "files", "again")
	s.ok("encrypt-file", plain, encrypted, "--keyId", "old", "--context", "tenant a")
	s.ok("decrypt-file", encrypted, again, "--context", "tenant a")
	if s.read("files/again") != s.read("files/plain") || strings.Contains(s.read("files/encrypted"), "4711") {
		t.Error("the file did not come back, or was not encrypted")
	}
	if got := s.ok("decrypt-file", encrypted, "-", "--context", "tenant a"); got != s.read("files/plain") {
		t.Errorf("standard output has %d bytes", len(got))
	}
	cut := s.write("files/cut", s.read("files/encrypted")[:200_000])
	for name, args := range map[string][]string{
		"a file that was cut": {"decrypt-file", cut, filepath.Join(s.dir, "files", "partial"), "--context", "tenant a"},
		"another context":     {"decrypt-file", encrypted, filepath.Join(s.dir, "files", "partial"), "--context", "tenant b"},
	} {
		if got := s.run(args...); got.code != commandline.ExitRefused || !strings.Contains(got.stderr, `DecryptStream with profile "Default": `) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if names := strings.Join(s.names("files"), " "); names != "again cut encrypted plain" {
		t.Errorf("found the files %s, expected no partial output", names)
	}
}

func TestWrappedKeysAndStreamsAreRewrappedAndNothingIsLost(t *testing.T) {
	s := newKeySandbox(t)
	plain := s.write("plain", strings.Repeat("4711 boxes\n", 30_000))
	digits := s.ok("generate-data-key", "--keyId", "old", "--without-data-key", "--output", "text")
	s.write("store/hex", digits)
	binary, err := hex.DecodeString(strings.TrimSpace(digits))
	if err != nil {
		t.Fatal(err)
	}
	s.write("store/deep/binary", string(binary))
	binary[len(binary)-1] ^= 1
	damaged := s.write("store/damaged", string(binary))
	s.write("store/readme", "no key")
	stream := filepath.Join(s.dir, "store", "stream")
	s.ok("encrypt-file", plain, stream, "--keyId", "old")
	before := s.read("store/damaged")
	owner := os.Geteuid()
	if owner == 0 {
		owner = 1001 // only root can rewrap keys of others
	}
	if err := os.Chown(stream, owner, -1); err != nil {
		t.Fatal(err)
	}

	store := filepath.Join(s.dir, "store")
	got := s.run("rewrap", store, "--keyId", "new")
	want := executed{1, "rewrapped 3, already new 0, failed 1, ignored 1\n", damaged + `: RewrapKey with profile "Default": wrappedKey does not authenticate with its key and context` + "\n"}
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if s.read("store/damaged") != before || s.read("store/readme") != "no key" {
		t.Error("a file that failed or was ignored has changed")
	}
	if got := s.ok("decrypt-file", stream, "-", "--profile", "New"); got != s.read("plain") {
		t.Errorf("the stream under the new key has %d bytes of plaintext", len(got))
	}
	if info, err := os.Stat(stream); err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(owner) {
		t.Errorf("the file has another owner than before, %d, or is gone: %v", owner, err)
	}
	s.ok("unwrap-key", "--file", filepath.Join(store, "hex"), "--profile", "New")
	if got := s.run("rewrap", store, "--keyId", "new"); got.code != 1 || got.stdout != "rewrapped 0, already new 3, failed 1, ignored 1\n" {
		t.Errorf("a second time: %+v", got)
	}
	if got := s.run("rewrap", filepath.Join(store, "readme")); got.code != 1 || !strings.Contains(got.stderr, "found neither a wrapped key nor an encrypted stream") {
		t.Errorf("a file without a key: %+v", got)
	}
	if names := strings.Join(s.names("store"), " "); names != "damaged deep hex readme stream" {
		t.Errorf("found the files %s", names)
	}

	lines := execute(t, digits+"no key\n", "--socket", s.socket, "rewrap", "-", "--keyId", "new")
	first, rest, _ := strings.Cut(lines.stdout, "\n")
	if lines.code != 1 || rest != "no key\n" || first+"\n" == digits || !strings.HasSuffix(lines.stderr, "rewrapped 1, already new 0, failed 1, ignored 0\n") {
		t.Errorf("lines: %+v", lines)
	}
	s.ok("unwrap-key", first, "--profile", "New")
}

func TestRewrapEndsWhereNoBrokerIs(t *testing.T) {
	s := newSandbox(t)
	path := s.write("store/key", "CBK\x01\x03\x01-\x01k\x00\x00wrapped")
	got := s.run("rewrap", path, "--timeout", "100ms")
	if got.code != commandline.ExitUnavailable || got.stdout != "rewrapped 0, already new 0, failed 1, ignored 0\n" {
		t.Errorf("got %+v", got)
	}
}

func TestRewrapOfManyFilesEndsWhereNoBrokerIs(t *testing.T) {
	s := newSandbox(t)
	args := []string{"rewrap", "--timeout", "100ms", "--parallel", "1"}
	for i := range 4 {
		args = append(args, s.write(fmt.Sprintf("store/key%d", i), "CBK\x01\x03\x01-\x01k\x00\x00wrapped"))
	}
	ended := make(chan executed, 1)
	go func() { ended <- s.run(args...) }()
	select {
	case got := <-ended:
		if got.code != commandline.ExitUnavailable || got.stdout != "rewrapped 0, already new 0, failed 1, ignored 0\n" {
			t.Errorf("got %+v", got)
		}
	case <-time.After(time.Minute):
		t.Error("the command waits although the broker cannot be reached")
	}
}

func TestRewrapGoesOnWithTheKeysOfOthersWhenAKeyManagerIsAway(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the listener accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }() // nothing reads from this pipe
	s := newSandbox(t)
	s.write("profiles/Profiles.yaml", "- Name: Default\n  API: {DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: old}, {Id: new}, {Id: away/k}, {Id: silent/k}]}}\n")
	s.write("keys/old.bin", strings.Repeat("o", 32))
	s.write("keys/new.bin", strings.Repeat("n", 32))
	s.write("providers/Providers.yaml", fmt.Sprintf(`Providers:
- {Name: away, Type: openbao, Endpoints: ["http://127.0.0.1:1"]}
- {Name: silent, Type: openbao, Endpoints: ["http://%s"], Connections: {RequestTimeout: 1h}}
`, silent.Addr()))
	s.write("providers/away/token", "t")
	s.write("providers/silent/token", "t")
	s.start("--keys-dir", filepath.Join(s.dir, "keys"), "--key-providers-dir", filepath.Join(s.dir, "providers"))
	const each = 12 // more than are rewrapped at one time
	local := s.ok("generate-data-key", "--keyId", "old", "--without-data-key", "--output", "text")
	before := map[string]string{}
	for i := range each {
		for _, provider := range []string{"away", "silent"} {
			wrapped, err := blob.Encode(blob.Header{Algorithm: algorithm.WrapAESGCM, Provider: provider, KeyID: "k"}, []byte("wrapped"))
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("store/%02d-%s", i, provider)
			before[name] = string(wrapped)
			s.write(name, string(wrapped))
		}
		s.write(fmt.Sprintf("store/last-%d", i), local)
	}

	store := filepath.Join(s.dir, "store")
	got := s.run("rewrap", store, "--keyId", "new", "--timeout", "10s")
	if want := fmt.Sprintf("rewrapped %d, already new 0, failed %d, ignored 0\n", each, 2*each); got.code != 1 || got.stdout != want {
		t.Errorf("exit code %d, standard output %q, want 1 and %q", got.code, got.stdout, want)
	}
	for name, content := range before {
		if s.read(name) != content {
			t.Errorf("%s has changed", name)
		}
		if line := filepath.Join(s.dir, name) + ": "; strings.Count(got.stderr, line) != 1 {
			t.Errorf("standard error does not say once why %s failed", name)
		}
	}
	for _, want := range []string{
		`: RewrapKey with profile "Default": the keys cannot be reached; the broker's log says why`,
		`: neither the broker at ` + s.socket + ` nor a key manager answered within 10s`,
		fmt.Sprintf(`%d keys of the provider "away" were not rewrapped, because a key manager was not available: run the command again when it is`, each),
		fmt.Sprintf(`%d keys of the provider "silent" were not rewrapped, because a key manager was not available: run the command again when it is`, each),
	} {
		if !strings.Contains(got.stderr, want+"\n") {
			t.Errorf("standard error does not say %s:\n%s", want, got.stderr)
		}
	}
	if names := s.names("store"); len(names) != 3*each {
		t.Errorf("found %d files, want %d: %s", len(names), 3*each, names)
	}
}
