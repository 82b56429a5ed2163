// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

const audience = "c6a1/bank/91f0"

var signingKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

func trustedKey() string {
	public, _ := signingKey.Public().(ed25519.PublicKey)
	return signed.FormatKey(public)
}

func (p *place) state() string { return filepath.Join(p.sockets, ".served") }

// sealed are the arguments that a broker has in a pod.
func (p *place) sealed(more ...string) []string {
	return p.args(append([]string{
		"--trusted-keys", trustedKey(), "--profiles-audience", audience, "--lowest-revision", "100", "--state-dir", p.state(),
	}, more...)...)
}

// seal replaces the profiles and their signature as a kubelet does.
func (p *place) seal(algorithm, audience string, revision int64) {
	p.t.Helper()
	content := []byte("- Name: Default\n  API: {HashData: {HashAlg: " + algorithm + "}}\n")
	signature, err := signed.Sign(signed.Statement{Audience: audience, Revision: revision, Time: time.Now(), Digest: profile.Digest(content)}, signingKey)
	if err != nil {
		p.t.Fatal(err)
	}
	p.project(map[string][]byte{profile.FileName: content, signed.FileName: signature})
}

func (p *place) project(files map[string][]byte) {
	p.t.Helper()
	stamped, err := os.MkdirTemp(p.profiles, "..2026_")
	if err != nil {
		p.t.Fatal(err)
	}
	data := filepath.Join(p.profiles, "..data")
	before, _ := os.Readlink(data) // none the first time
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(stamped, name), content, 0o644))
	}
	err = errors.Join(err, os.Symlink(filepath.Base(stamped), data+"_tmp"), os.Rename(data+"_tmp", data))
	if before != "" {
		err = errors.Join(err, os.RemoveAll(filepath.Join(p.profiles, before)))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// awaitState waits until /profiles has a revision and a reason.
func awaitState(t *testing.T, status string, revision int64, reason string) {
	t.Helper()
	var told struct {
		Digest, Reason string
		Revision       int64
	}
	for deadline := time.Now().Add(waitLimit); told.Revision != revision || told.Reason != reason; {
		if time.Now().After(deadline) {
			t.Fatalf("/profiles tells %+v, want revision %d, reason %s", told, revision, reason)
		}
		_, body := get(t, status, "/profiles")
		if err := json.Unmarshal([]byte(body), &told); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAKilledBrokerNeverGoesBackToAnOlderSet(t *testing.T) {
	useValidated(t)
	for sentence, test := range map[string]struct {
		change func(*place)
		reason string
	}{
		"with yesterday's set put back":    {func(p *place) { p.seal("sha-256", audience, 100) }, "RevisionRejected"},
		"with another namespace's set":     {func(p *place) { p.seal("sha-256", "c6a1/shop/77aa", 999) }, "SignatureRejected"},
		"with a set that nobody signed":    {func(p *place) { p.project(map[string][]byte{profile.FileName: []byte("[]\n")}) }, "SignatureRejected"},
		"with the files deleted":           {func(p *place) { p.project(nil) }, "Missing"},
		"with nothing changed":             {func(*place) {}, "Loaded"},
		"with the same set, signed before": {func(p *place) { p.seal("sha3-512", audience, 101) }, "RevisionRejected"},
	} {
		t.Run(sentence, func(t *testing.T) {
			at := newPlace(t, "")
			at.seal("sha-256", audience, 100)
			first := start(t, at.sealed("--require-fips")...)
			status := first.listening()
			awaitState(t, status, 100, "Loaded")
			at.seal("sha3-512", audience, 102)
			awaitState(t, status, 102, "Loaded")
			first.kill(syscall.SIGKILL)
			<-first.exited

			test.change(at)
			second := start(t, at.sealed("--require-fips")...)
			status = second.listening()
			awaitState(t, status, 102, test.reason)
			if code, body := get(t, status, "/readyz"); code != http.StatusOK {
				t.Errorf("/readyz: %d %q", code, body)
			}
			if algorithm, err := hashes(t, connect(t, at.socket(""))); err != nil || algorithm != "sha3-512" {
				t.Errorf("got %q, %v", algorithm, err)
			}
			_, metrics := get(t, status, "/metrics")
			wants := []string{"crypto_broker_profiles_revision 102"}
			if test.reason != "Loaded" {
				wants = append(wants, fmt.Sprintf("crypto_broker_profiles_rejections_total{reason=%q} 1", test.reason))
			}
			for _, want := range wants {
				if !strings.Contains(metrics, want) {
					t.Errorf("/metrics has no %s", want)
				}
			}
			at.seal("sha-384", audience, 103)
			awaitState(t, status, 103, "Loaded")
		})
	}
}

func TestABrokerThatTrustsAKeyWaitsForASignedSet(t *testing.T) {
	at := newPlace(t, "sha-256")
	broker := start(t, at.sealed()...)
	status := broker.listening()
	if code, body := get(t, status, "/readyz"); code != http.StatusServiceUnavailable || body != "not ready: NoProfiles\n" {
		t.Errorf("/readyz: %d %q", code, body)
	}
	if refused := broker.logged("no valid profiles yet: the broker waits for a valid profile file", 1); refused["error"] != "there is no Profiles.sig beside Profiles.yaml, expected one, because this broker takes only signed sets" {
		t.Errorf("logged %v", refused)
	}
	at.seal("sha-512", audience, 99) // older than the admission of the pod
	if refused := broker.logged("no valid profiles yet: the broker waits for a valid profile file", 2); refused["error"] != "the set has the revision 99, expected at least 100, the lowest allowed revision" {
		t.Errorf("logged %v", refused)
	}
	at.seal("sha-512", audience, 100)
	awaitState(t, status, 100, "Loaded")
}

func TestSettingsOfSignedSetsThatMakeNoSenseAreNamed(t *testing.T) {
	key := trustedKey()
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"a key without an audience":      {[]string{"--trusted-keys", key}, "--profiles-audience or CRYPTO_BROKER_PROFILES_AUDIENCE is required with --trusted-keys: the audience that signed sets must have"},
		"an audience without a key":      {[]string{"--profiles-audience", audience}, "--profiles-audience is for signed sets, but no key is trusted: expected --trusted-keys or CRYPTO_BROKER_TRUSTED_KEYS as well"},
		"a lowest revision without keys": {[]string{"--lowest-revision", "5"}, "--lowest-revision is for signed sets, but no key is trusted: expected --trusted-keys or CRYPTO_BROKER_TRUSTED_KEYS as well"},
		"a state directory without keys": {[]string{"--state-dir", "/s"}, "--state-dir is for signed sets, but no key is trusted: expected --trusted-keys or CRYPTO_BROKER_TRUSTED_KEYS as well"},
		"an empty list of keys":          {[]string{"--trusted-keys", ""}, `invalid argument "" for "--trusted-keys" flag: expected some text`},
		"an empty key":                   {[]string{"--trusted-keys", key + ","}, `--trusted-keys or CRYPTO_BROKER_TRUSTED_KEYS: a key does not begin with "ed25519:", expected "ed25519:" and the base64 of the 32 bytes of an Ed25519 public key`},
		"a private key, not repeated":    {[]string{"--trusted-keys", "ed25519:c2VjcmV0"}, "--trusted-keys or CRYPTO_BROKER_TRUSTED_KEYS: a key has 6 bytes, expected the 32 of an Ed25519 public key"},
		"a key twice":                    {[]string{"--profiles-audience", audience, "--trusted-keys", key + "," + key}, "--trusted-keys, --profiles-audience and --lowest-revision: found the trusted key " + signed.KeyID(signingKey.Public().(ed25519.PublicKey)) + " twice, expected each once"},
		"a revision below 0":             {[]string{"--lowest-revision", "-1"}, `invalid argument "-1" for "--lowest-revision" flag: expected a number from 0 to 9223372036854775807`},
		"a relative state directory":     {[]string{"--state-dir", "s"}, `invalid argument "s" for "--state-dir" flag: expected an absolute path`},
	} {
		t.Run(sentence, func(t *testing.T) {
			code, _, stderr := run(t, environment(), append([]string{"--profiles-dir", "/p"}, test.args...)...)
			if want := "broker: " + test.want + " (see broker --help)\n"; code != 2 || stderr != want {
				t.Errorf("got %d %q\nwant 2 %q", code, stderr, want)
			}
		})
	}
}
