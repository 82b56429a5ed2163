// SPDX-License-Identifier: Apache-2.0

package signed_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

// Each key is made from one byte, so that the tests are deterministic.
func key(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

func public(b byte) ed25519.PublicKey {
	k, _ := key(b).Public().(ed25519.PublicKey)
	return k
}

const audience = "c6a1/bank/91f0"

var profiles = []byte("- Name: Default\n")

func statement() signed.Statement {
	return signed.Statement{
		Format: signed.Format, Audience: audience, Revision: 1_700_000_000_000,
		Time: time.Date(2026, 11, 20, 12, 0, 0, 123e6, time.UTC), Digest: signed.Digest(profiles),
	}
}

func trust() signed.Trust {
	return signed.Trust{Keys: []ed25519.PublicKey{public(1)}, Audience: audience}
}

func sign(t testing.TB, s signed.Statement, keys ...ed25519.PrivateKey) []byte {
	t.Helper()
	signature, err := signed.Sign(s, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

// envelope makes an envelope by hand around any payload, validly signed.
func envelope(payloadType, payload string, keys ...ed25519.PrivateKey) string {
	message := fmt.Sprintf("DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
	var signatures []string
	for _, k := range keys {
		p, _ := k.Public().(ed25519.PublicKey)
		signatures = append(signatures, fmt.Sprintf(`{"keyid":%q,"sig":%q}`, signed.KeyID(p), base64.StdEncoding.EncodeToString(ed25519.Sign(k, []byte(message)))))
	}
	return fmt.Sprintf(`{"payloadType":%q,"payload":%q,"signatures":[%s]}`, payloadType, base64.StdEncoding.EncodeToString([]byte(payload)), strings.Join(signatures, ","))
}

func TestASignedSetIsWrittenAsDSSESaysItIs(t *testing.T) {
	s := statement()
	s.Format = 0 // Sign sets it
	s.Time = s.Time.In(time.FixedZone("elsewhere", 3600))
	payload := `{"format":1,"audience":"c6a1/bank/91f0","revision":1700000000000,"time":"2026-11-20T12:00:00.123Z","digest":"` + signed.Digest(profiles) + `"}`
	if diff := cmp.Diff(envelope(signed.PayloadType, payload, key(1), key(2))+"\n", string(sign(t, s, key(1), key(2)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOneTrustedSignatureSuffices(t *testing.T) {
	for sentence, test := range map[string]struct {
		keys    []ed25519.PrivateKey
		trusted []ed25519.PublicKey
	}{
		"the only key":                     {[]ed25519.PrivateKey{key(1)}, []ed25519.PublicKey{public(1)}},
		"the newer key of two":             {[]ed25519.PrivateKey{key(2), key(1)}, []ed25519.PublicKey{public(2)}},
		"the older key of two":             {[]ed25519.PrivateKey{key(2), key(1)}, []ed25519.PublicKey{public(1)}},
		"a key that not everybody trusts":  {[]ed25519.PrivateKey{key(1)}, []ed25519.PublicKey{public(3), public(1)}},
		"two keys that are trusted, first": {[]ed25519.PrivateKey{key(1), key(2)}, []ed25519.PublicKey{public(2), public(1)}},
	} {
		t.Run(sentence, func(t *testing.T) {
			signature := sign(t, statement(), test.keys...)
			got, err := signed.Trust{Keys: test.trusted, Audience: audience, Lowest: statement().Revision}.Verify(profiles, signature)
			if err != nil || got != statement() {
				t.Errorf("got %+v, %v", got, err)
			}
			read, ids, err := signed.Read(signature)
			if err != nil || read != statement() || len(ids) != len(test.keys) || ids[0] != signed.KeyID(test.keys[0].Public().(ed25519.PublicKey)) {
				t.Errorf("read %+v, %v, %v", read, ids, err)
			}
		})
	}
}

func TestWhatIsNotSignedForThisPlaceIsRefusedWithASentence(t *testing.T) {
	good := string(sign(t, statement(), key(1)))
	id1, id2 := signed.KeyID(public(1)), signed.KeyID(public(2))
	payload := func(change string) string {
		_, rest, _ := strings.Cut(good, `"payload":"`)
		encoded, _, _ := strings.Cut(rest, `"`)
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		before, after, _ := strings.Cut(change, " => ")
		changed := strings.Replace(string(raw), before, after, 1)
		if changed == string(raw) {
			t.Fatalf("%q is not in %s", before, raw)
		}
		return envelope(signed.PayloadType, changed, key(1))
	}
	with := func(change func(*signed.Statement)) string {
		s := statement()
		change(&s)
		return string(sign(t, s, key(1)))
	}
	const fields = "payloadType, payload and signatures, each with keyid and sig"
	const stated = "format, audience, revision, time and digest"
	for sentence, test := range map[string]struct{ signature, want string }{
		"nothing":                   {"", "Profiles.sig is empty, expected a signature envelope"},
		"more than the limit":       {strings.Repeat(" ", signed.MaxFileSize+1), "Profiles.sig has more than 65536 bytes, expected a smaller signature envelope"},
		"white space":               {" \n", "Profiles.sig is not as expected, a JSON object with " + fields + ": it ends too early"},
		"half a file":               {good[:200], "Profiles.sig is not as expected, a JSON object with " + fields + ": it ends too early"},
		"no JSON":                   {"hello", "Profiles.sig is not as expected, a JSON object with " + fields + ": invalid character 'h' looking for beginning of value"},
		"an unknown field":          {strings.Replace(good, "{", `{"note":"x",`, 1), "Profiles.sig is not as expected, a JSON object with " + fields + `: json: unknown field "note"`},
		"an unknown field, inside":  {strings.Replace(good, `{"keyid"`, `{"cert":"x","keyid"`, 1), "Profiles.sig is not as expected, a JSON object with " + fields + `: json: unknown field "cert"`},
		"a field twice":             {strings.Replace(good, "{", `{"payload":"",`, 1), "Profiles.sig does not have its only valid spelling, expected " + fields + ", in this order and each once"},
		"other capitals":            {strings.Replace(good, `"payload"`, `"Payload"`, 1), "Profiles.sig does not have its only valid spelling, expected " + fields + ", in this order and each once"},
		"something behind it":       {good + "{}", "Profiles.sig is not as expected, one JSON object with " + fields + ": invalid character '{' after top-level value"},
		"null":                      {"null", "Profiles.sig does not have its only valid spelling, expected " + fields + ", in this order and each once"},
		"another payload type":      {envelope("text/plain", "hello", key(1)), `Profiles.sig has the payload type "text/plain", expected "application/vnd.crypto-broker.profiles.v1+json"`},
		"no signature":              {envelope(signed.PayloadType, "{}"), "Profiles.sig has 0 signatures, expected 1 to 16"},
		"too many signatures":       {envelope(signed.PayloadType, "{}", make17()...), "Profiles.sig has 17 signatures, expected 1 to 16"},
		"two signatures by one key": {envelope(signed.PayloadType, "{}", key(1), key(1)), `Profiles.sig has two signatures with the key id "` + id1 + `", expected one signature for each key`},
		"a short signature":         {strings.Replace(good, `"sig":"`+good[strings.Index(good, `"sig":"`)+7:len(good)-5], `"sig":"AAAA`, 1), `Profiles.sig has a signature of 3 bytes with the key id "` + id1 + `", expected the 64 of Ed25519`},
		"a key that nobody trusts":  {string(sign(t, statement(), key(2))), `Profiles.sig is signed with the keys "` + id2 + `", expected one of the trusted keys ` + id1},
		"somebody else's signature": {strings.Replace(string(sign(t, statement(), key(2))), id2, id1, 1), "the signature in Profiles.sig with the key " + id1 + " does not match what it signs, expected a valid one"},
		"a payload that was changed": {
			strings.Replace(good, base64.StdEncoding.EncodeToString([]byte(`{"format"`)), base64.StdEncoding.EncodeToString([]byte(`{"Format"`)), 1),
			"the signature in Profiles.sig with the key " + id1 + " does not match what it signs, expected a valid one",
		},
		"a statement that is no object":     {envelope(signed.PayloadType, "[]", key(1)), "the statement in Profiles.sig has no format that is a number, expected 1"},
		"a statement without a format":      {envelope(signed.PayloadType, "{}", key(1)), "the statement in Profiles.sig has no format, expected 1"},
		"a statement of the future":         {envelope(signed.PayloadType, `{"format":2,"place":"x"}`, key(1)), "the statement in Profiles.sig has the format 2, expected 1"},
		"a statement with an unknown field": {payload(`"time" => "zone":1,"time"`), "the statement in Profiles.sig is not as expected, a JSON object with " + stated + `: json: unknown field "zone"`},
		"a statement with two audiences":    {payload(`"audience" => "audience":"x","audience"`), "the statement in Profiles.sig does not have its only valid spelling, expected " + stated + ", in this order and each once"},
		"a statement without a revision":    {payload(`"revision":1700000000000, => `), "the statement in Profiles.sig does not have its only valid spelling, expected " + stated + ", in this order and each once"},
		"a revision of 0":                   {payload(`1700000000000 => 0`), "the statement in Profiles.sig has the revision 0, expected 1 or more"},
		"a revision beyond all":             {payload(`1700000000000 => 9223372036854775808`), "the statement in Profiles.sig is not as expected, a JSON object with " + stated + ": json: cannot unmarshal number 9223372036854775808 into Go struct field Statement.revision of type int64"},
		"a time elsewhere":                  {payload(`123Z => 123+01:00`), "the statement in Profiles.sig has no time in UTC, expected the time when it was signed"},
		"a digest of another kind":          {payload(`sha256: => sha512:`), "the statement in Profiles.sig has the digest \"" + strings.Replace(statement().Digest, "256", "512", 1) + "\", expected \"sha256:\" and 64 lower-case hexadecimal digits"},
		"a set for another namespace":       {with(func(s *signed.Statement) { s.Audience = "c6a1/shop/77aa" }), `the set is signed for "c6a1/shop/77aa", expected "c6a1/bank/91f0"`},
		"a set for a long name":             {with(func(s *signed.Statement) { s.Audience = strings.Repeat("é", 128) }), `the set is signed for "` + strings.Repeat("é", 64) + `"…, expected "c6a1/bank/91f0"`},
		"other profiles":                    {with(func(s *signed.Statement) { s.Digest = signed.Digest(nil) }), "the profiles have the digest " + signed.Digest(profiles) + ", expected " + signed.Digest(nil) + " as signed in Profiles.sig"},
		"an older revision than is allowed": {with(func(s *signed.Statement) { s.Revision = 41 }), "the set has the revision 41, expected at least 42, the lowest allowed revision"},
	} {
		t.Run(sentence, func(t *testing.T) {
			trust := trust()
			trust.Lowest = 42
			if got, err := trust.Verify(profiles, []byte(test.signature)); err == nil || err.Error() != test.want || got != (signed.Statement{}) {
				t.Errorf("got  %+v, %v\nwant %s", got, err, test.want)
			}
		})
	}
}

func make17() []ed25519.PrivateKey {
	var keys []ed25519.PrivateKey
	for i := range byte(signed.MaxSignatures + 1) {
		keys = append(keys, key(i))
	}
	return keys
}

func TestATrustThatMakesNoSenseIsRefused(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(*signed.Trust)
		want   string
	}{
		"no key":                  {func(t *signed.Trust) { t.Keys = nil }, "found 0 trusted keys, expected 1 to 16"},
		"half a key":              {func(t *signed.Trust) { t.Keys[0] = t.Keys[0][:16] }, "found a trusted key of 16 bytes, expected the 32 of Ed25519"},
		"a key twice":             {func(t *signed.Trust) { t.Keys = append(t.Keys, t.Keys[0]) }, "found the trusted key " + signed.KeyID(public(1)) + " twice, expected each once"},
		"no audience":             {func(t *signed.Trust) { t.Audience = "" }, "found an audience of 0 bytes, expected 1 to 256"},
		"a revision below 0":      {func(t *signed.Trust) { t.Lowest = -1 }, "found the lowest revision -1, expected 0 or more"},
		"an audience without end": {func(t *signed.Trust) { t.Audience = strings.Repeat("a", 257) }, "found an audience of 257 bytes, expected 1 to 256"},
	} {
		t.Run(sentence, func(t *testing.T) {
			trust := trust()
			test.change(&trust)
			if _, err := trust.Verify(profiles, sign(t, statement(), key(1))); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestSignRefusesWhatNobodyCouldVerify(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(*signed.Statement)
		keys   []ed25519.PrivateKey
		want   string
	}{
		"no key":        {nil, nil, "sign profiles with 0 keys: expected 1 to 16"},
		"a key twice":   {nil, []ed25519.PrivateKey{key(1), key(1)}, `sign profiles: the envelope has two signatures with the key id "` + signed.KeyID(public(1)) + `", expected one signature for each key`},
		"half a key":    {nil, []ed25519.PrivateKey{key(1)[:32]}, "sign profiles: key 1 has 32 bytes, expected 64"},
		"no place":      {func(s *signed.Statement) { s.Audience = "" }, []ed25519.PrivateKey{key(1)}, "sign profiles: the statement has an audience of 0 bytes, expected 1 to 256"},
		"no number":     {func(s *signed.Statement) { s.Revision = 0 }, []ed25519.PrivateKey{key(1)}, "sign profiles: the statement has the revision 0, expected 1 or more"},
		"no time":       {func(s *signed.Statement) { s.Time = time.Time{} }, []ed25519.PrivateKey{key(1)}, "sign profiles: the statement has no time in UTC, expected the time when it was signed"},
		"half a digest": {func(s *signed.Statement) { s.Digest = "sha256:00" }, []ed25519.PrivateKey{key(1)}, `sign profiles: the statement has the digest "sha256:00", expected "sha256:" and 64 lower-case hexadecimal digits`},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := statement()
			if test.change != nil {
				test.change(&s)
			}
			if _, err := signed.Sign(s, test.keys...); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestTheTextOfAKeyIsReadBack(t *testing.T) {
	text := signed.FormatKey(public(1))
	if got, err := signed.ParseKey(text); err != nil || !got.Equal(public(1)) {
		t.Errorf("%s: got %x, %v", text, got, err)
	}
	der, err := x509.MarshalPKIXPublicKey(public(1))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(der); signed.KeyID(public(1)) != hex.EncodeToString(sum[:8]) {
		t.Errorf("key id %s is not from the SHA-256 of the SubjectPublicKeyInfo, %x", signed.KeyID(public(1)), sum)
	}
	private := base64.StdEncoding.EncodeToString(key(1))
	for text, want := range map[string]string{
		"":                           `a key does not begin with "ed25519:", expected "ed25519:" and the base64 of the 32 bytes of an Ed25519 public key`,
		private:                      `a key does not begin with "ed25519:", expected "ed25519:" and the base64 of the 32 bytes of an Ed25519 public key`,
		"ed25519:" + private:         "a key has 64 bytes, expected the 32 of an Ed25519 public key",
		strings.TrimRight(text, "="): `a key is not standard base64 after "ed25519:", expected the base64 of the 32 bytes of an Ed25519 public key`,
	} {
		if _, err := signed.ParseKey(text); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(sign(f, statement(), key(1)))
	f.Add(sign(f, statement(), key(2), key(1)))
	f.Add(sign(f, statement(), key(2)))
	f.Add([]byte(envelope(signed.PayloadType, `{"format":1}`, key(1))))
	f.Fuzz(func(t *testing.T, signature []byte) {
		read, ids, readErr := signed.Read(signature)
		got, err := trust().Verify(profiles, signature)
		if err != nil {
			var digest *signed.DigestError
			var revision *signed.RevisionError
			if errors.As(err, &digest) || errors.As(err, &revision) {
				t.Errorf("%q was taken for signed: %v", signature, err)
			}
			return
		}
		// Only the statement that was signed can be verified, in the spelling of Sign.
		if readErr != nil || read != got || got != statement() || len(ids) == 0 {
			t.Errorf("%q was verified as %+v, but read as %+v, %v", signature, got, read, readErr)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"format":1,"audience":"a","revision":1,"time":"2026-11-20T12:00:00Z","digest":"` + signed.Digest(nil) + `"}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		encoded, err := json.Marshal(map[string]any{"payload": payload})
		if err != nil {
			t.Fatal(err)
		}
		signature := bytes.Replace(encoded, []byte("{"), []byte(`{"payloadType":"`+signed.PayloadType+`",`), 1)
		signature = append(signature[:len(signature)-1], `,"signatures":[{"keyid":"k","sig":"`+base64.StdEncoding.EncodeToString(make([]byte, 64))+`"}]}`...)
		s, ids, err := signed.Read(signature)
		if err != nil {
			return
		}
		// A parsed statement can be encoded again, and has the same meaning.
		again, err := signed.Sign(s, key(1))
		if err != nil {
			t.Fatalf("%+v was read, but cannot be signed: %v", s, err)
		}
		if got, _, err := signed.Read(again); err != nil || got != s || len(ids) != 1 {
			t.Errorf("%+v was read as %+v, %v", s, got, err)
		}
	})
}
