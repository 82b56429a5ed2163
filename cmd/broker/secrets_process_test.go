// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"

	v1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
	"github.com/crypto-broker/crypto-broker-operator/test/memorysearch"
	"github.com/crypto-broker/crypto-broker-operator/test/planted"
)

// addPrivateKey makes the secret parts of a private key in PEM secrets: its number, and the text that
// has it.
func addPrivateKey(t *testing.T, secrets *planted.Secrets, name string, text []byte) {
	t.Helper()
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	number, err := key.(*ecdsa.PrivateKey).Bytes() //nolint:forcetypeassert // authority made it
	if err != nil {
		t.Fatal(err)
	}
	secrets.Add(name, number)
	at := bytes.Index(block.Bytes, number)
	secrets.Add(name, []byte(strings.ReplaceAll(string(text), "\n", ""))[len("-----BEGIN PRIVATE KEY-----")+(at*8+5)/6:][:40])
}

const searched = `
- Name: MARKER
  Audit: {Level: all, Required: true}
  API:
    HashData: {HashAlg: sha-256}
    EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: app}, {Id: bad}, {Id: echo/app}, {Id: hsm/app}]}
    SignData: {SignAlg: ecdsa, HashAlg: sha-256, KeyIds: [{Id: signing}]}
    DataKeys: {WrapAlgs: [aes-gcm], KeySize: 256, KeyIds: [{Id: bao/kek}, {Id: echo/kek}]}
- Name: Session
  Audit: {Level: all}
  API: {Session: {Protocols: [session-v2], KeyAgreementAlg: ECDH_P256, EncryptAlg: A256GCM, Store: redis}}
- Name: Released
  KMS: {Client: openbao, Config: openbao.yaml, Cache: false}
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random}}
`

func TestNoSinkOfABrokerHasASecret(t *testing.T) {
	var secrets planted.Secrets
	var out sinks
	marker := "M" + rand.Text()[:20] // the name of a profile, which every sink contains

	at := newPlace(t, "")
	at.write(strings.ReplaceAll(searched, "MARKER", marker))
	dir := filepath.Dir(at.profiles)
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, certificate := authority(t)
	addPrivateKey(t, &secrets, "the key that signs", key)
	auditSigner, _ := authority(t)
	addPrivateKey(t, &secrets, "the key of the audit log", auditSigner)

	write("keys/app.bin", secrets.Text("the AES key", 32))
	write("keys/bad.bin", secrets.Text("an AES key of a wrong length", 33))
	write("keys/signing.key", string(key))
	write("keys/broken.pem", "-----BEGIN PRIVATE KEY-----\n"+secrets.Text("a private key that cannot be read", 48)+"\n-----END PRIVATE KEY-----\n")
	write("providers/Providers.yaml", fmt.Sprintf(`Providers:
- {Name: bao, Type: openbao, Endpoints: ['%s'], OpenBao: {Engine: transit}}
- {Name: echo, Type: openbao, Endpoints: ['%s'], OpenBao: {Engine: transit}}
- {Name: hsm, Type: kmip, Endpoints: ['127.0.0.1:1']}
`, memorysearch.Transit(t), echo(t)))
	write("providers/bao/token", secrets.Text("the token for OpenBao", 26))
	write("providers/echo/token", secrets.Text("the token for a server that quotes it", 26))
	write("providers/hsm/tls.key", secrets.Text("a client's key that cannot be read", 48))
	write("providers/hsm/tls.crt", string(certificate))
	write("redis/Redis.yaml", "Addresses: ["+oldRedis(t)+"]\nWithoutTLS: true\nKeysInClear: true\n")
	write("redis/password", secrets.Text("the password for Redis", 26))
	write("kms/openbao.yaml", "address: https://127.0.0.1:1\ntoken: ["+secrets.Text("a token in a file that cannot be read", 26)+"\nmount: m\n")
	authorities := write("gateway/ca.crt", string(certificate))
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(app.Close)
	_, appPort, err := net.SplitHostPort(app.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	records := filepath.Join(dir, "audit.jsonl")

	// The log has the name of a variable without effect. This shows that the search works.
	control := secrets.Text("the control", 20)
	environment := environment("CRYPTO_BROKER_"+control+"=1", "OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json",
		"OTEL_EXPORTER_OTLP_ENDPOINT="+out.collector(t), "OTEL_BSP_SCHEDULE_DELAY=50",
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer "+secrets.Text("the token for the collector", 26))
	broker := startWith(t, environment, at.args("--log-level=debug", "--keys-dir", filepath.Join(dir, "keys"), "--key-providers-dir", filepath.Join(dir, "providers"),
		"--session-redis-dir", filepath.Join(dir, "redis"), "--kms-dir", filepath.Join(dir, "kms"), "--audit-file", records, "--audit-sync=each",
		"--audit-key", write("audit.key", string(auditSigner)), "--session-gateway", "127.0.0.1:0:"+appPort, "--session-gateway-plain", "/plain",
		"--key-gateway", "127.0.0.1:1", "--key-gateway-token", write("gateway/token", secrets.Text("the token of the service account", 40)),
		"--key-gateway-authorities", authorities)...)
	status := broker.listening()

	callWithSecrets(t, &secrets, v1.NewCryptoServiceClient(connect(t, at.socket(""))), marker)
	sessionGateway, _ := broker.logged("listening", 1)["sessionGateway"].(string)
	askWithSecrets(t, &secrets, sessionGateway)
	broker.logged("sessions in Redis are not available: the broker refuses their requests until they are", 1)
	for _, path := range []string{"/metrics", "/profiles", "/uses", "/readyz", "/healthz"} {
		_, body := get(t, status, path)
		out.add("status port "+path, []byte(body))
	}
	broker.kill(syscall.SIGTERM)
	broker.ends(0)
	out.add("log", broker.raw())
	written, err := os.ReadFile(records)
	if err != nil {
		t.Fatal(err)
	}
	out.add("audit records", written)

	for _, name := range []string{"log", "spans", "audit records", "status port /metrics", "status port /uses"} {
		if text := out.text(name); !strings.Contains(text, marker) {
			t.Errorf("%s: the profile is not there, so the test shows nothing: %.2000s", name, text)
		}
	}
	for name, text := range out.texts {
		found := secrets.Find(text.String())
		if name == "log" {
			if !slices.Contains(found, "the control") {
				t.Error("the test does not find the secret that the log has")
			}
			found = slices.DeleteFunc(found, func(name string) bool { return name == "the control" })
		}
		for _, secret := range found {
			t.Errorf("%s: found %s", name, secret)
		}
	}
}

// callWithSecrets makes calls of all operations with keys of the broker and keys of requests. Some of them fail.
func callWithSecrets(t *testing.T, secrets *planted.Secrets, client v1.CryptoServiceClient, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	text := func(name string) []byte { return []byte(secrets.Text(name, 32)) }
	byID := func(id string) *v1.KeySource { return &v1.KeySource{Source: &v1.KeySource_KeyId{KeyId: id}} }
	inRequest := func(key []byte) *v1.KeySource { return &v1.KeySource{Source: &v1.KeySource_RawKey{RawKey: key}} }
	single := func(key *v1.KeySource) *v1.SignKeySource {
		return &v1.SignKeySource{Source: &v1.SignKeySource_Single{Single: key}}
	}
	encrypt := func(profile string, key *v1.KeySource) error {
		_, err := client.EncryptData(ctx, &v1.EncryptDataRequest{Profile: profile, KeySource: key, Plaintext: text("a plaintext"),
			EncryptMetadata: &v1.EncryptMetadata{Aad: text("additional data")}})
		return err
	}
	calls := []struct {
		sentence string
		fails    bool
		call     func() error
	}{
		{"a hash", false, func() error {
			_, err := client.HashData(ctx, &v1.HashDataRequest{Profile: name, Input: text("an input to hash")}, grpc.WaitForReady(true))
			return err
		}},
		// The first one, because further problems with keys have no line within a second.
		{"a data key for a server that quotes", true, func() error {
			_, err := client.WrapKey(ctx, &v1.WrapKeyRequest{Profile: name, KeyId: "echo/kek", DataKey: text("a data key that a server quotes")})
			return err
		}},
		{"a ciphertext by a key of the broker", false, func() error { return encrypt(name, byID("app")) }},
		{"a ciphertext by a key of the request", true, func() error { return encrypt(name, inRequest(text("an AES key of a request"))) }},
		{"a key of a wrong length in a request", true, func() error { return encrypt(name, inRequest([]byte(secrets.Text("an AES key of 31 bytes", 31)))) }},
		{"a key that cannot be used", true, func() error { return encrypt(name, byID("bad")) }},
		{"a key of a server that quotes", true, func() error { return encrypt(name, byID("echo/app")) }},
		{"a key of a provider that does not answer", true, func() error { return encrypt(name, byID("hsm/app")) }},
		{"a file of a released profile that cannot be read", true, func() error { return encrypt("Released", byID("app")) }},
		{"a profile that is none", true, func() error { return encrypt("None", byID("app")) }},
		{"a ciphertext that is not of the key", true, func() error {
			_, err := client.DecryptData(ctx, &v1.DecryptDataRequest{Profile: name, KeySource: byID("app"), Ciphertext: text("a ciphertext"),
				DecryptMetadata: &v1.DecryptMetadata{Nonce: make([]byte, 12), Tag: make([]byte, 16)}})
			return err
		}},
		{"a signature", false, func() error {
			_, err := client.SignData(ctx, &v1.SignDataRequest{Profile: name, KeySource: single(byID("signing")), Input: text("an input to sign")})
			return err
		}},
		{"a signature by a key that cannot be read", true, func() error {
			key := "-----BEGIN PRIVATE KEY-----\n" + secrets.Text("a private key of a request", 48) + "\n-----END PRIVATE KEY-----\n"
			_, err := client.SignData(ctx, &v1.SignDataRequest{Profile: name, KeySource: single(inRequest([]byte(key))), Input: text("an input to sign")})
			return err
		}},
		{"a certificate of a request that cannot be read", true, func() error {
			_, err := client.SignCertificate(ctx, &v1.SignCertificateRequest{Profile: name, Csr: secrets.Text("a request for a certificate", 64),
				CaPrivateKey: secrets.Text("the key of an issuer", 64), CaCert: secrets.Text("the certificate of an issuer", 64)})
			return err
		}},
		{"a data key that is wrapped and unwrapped", false, func() error {
			key := text("a data key")
			wrapped, err := client.WrapKey(ctx, &v1.WrapKeyRequest{Profile: name, KeyId: "bao/kek", DataKey: key})
			if err != nil {
				return err
			}
			reply, err := client.UnwrapKey(ctx, &v1.UnwrapKeyRequest{Profile: name, WrappedKey: wrapped.GetWrappedKey()})
			if err == nil && !bytes.Equal(reply.GetDataKey(), key) {
				t.Error("another data key was unwrapped")
			}
			return err
		}},
		{"a data key of the broker", false, func() error {
			reply, err := client.GenerateDataKey(ctx, &v1.GenerateDataKeyRequest{Profile: name, KeyId: "bao/kek"})
			if err == nil {
				secrets.Add("a data key of the broker", reply.GetDataKey())
			}
			return err
		}},
	}
	for _, c := range calls {
		if err := c.call(); (err != nil) != c.fails {
			t.Errorf("%s: %v", c.sentence, err)
		}
	}
}

// askWithSecrets sends requests to the session gateway that it has to refuse, and one that the
// application does not answer.
func askWithSecrets(t *testing.T, secrets *planted.Secrets, address string) {
	t.Helper()
	client := http.Client{Timeout: waitLimit, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/session/init", "/session/refresh", "/orders", "/plain"} {
		body := `{"keyAgreement":"` + secrets.Text("the body of a request", 32) + `","clientPublicKey":"` + secrets.Text("the body of a request", 32) + `"`
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+path+"?token="+secrets.Text("the query of a request", 32), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, header := range []string{"Authorization", "Cookie", "X-Nonce", "X-Kid", "X-Session-Id", "X-Timestamp"} {
			request.Header.Set(header, secrets.Text("the header "+header, 32))
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if _ = answer.Body.Close(); answer.StatusCode < 400 {
			t.Errorf("%s: %s, expected an error", path, answer.Status)
		}
	}
}

func TestABrokerThatCannotStartDoesNotQuoteSecrets(t *testing.T) {
	for sentence, test := range map[string]struct {
		environment func(secret string) string
		file        func(secret string) (flag, content string)
	}{
		"headers for the collector": {environment: func(secret string) string {
			return "OTEL_EXPORTER_OTLP_HEADERS=" + secret
		}},
		"the header Authorization": {environment: func(secret string) string {
			return "OTEL_EXPORTER_OTLP_HEADERS_AUTHORIZATION=Bearer " + secret + "\x01"
		}},
		"the key of the audit log": {file: func(secret string) (string, string) {
			return "--audit-key", "-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----\n"
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var secrets planted.Secrets
			secret := secrets.Text(sentence, 48)
			at := newPlace(t, "sha-256")
			args, env := at.args("--log-level=debug"), environment("OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1")
			if test.environment != nil {
				env = append(env, test.environment(secret))
			}
			if test.file != nil {
				flag, content := test.file(secret)
				path := filepath.Join(t.TempDir(), "file")
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, flag, path)
			}
			code, stdout, stderr := run(t, env, args...)
			if code == 0 || stderr == "" {
				t.Fatalf("exit code %d and %q, expected a failure with a sentence", code, stderr)
			}
			if found := secrets.Find(stdout + stderr); len(found) > 0 {
				t.Errorf("found the secret in %q", stderr)
			}
		})
	}
}
