// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/go-jose/go-jose/v4"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// gatewayEnvironment has the configuration file of a key access service that is a process of its own.
const gatewayEnvironment = "GATEWAY_KEY_ACCESS_CONFIG"

// keyAccessProcess is a key access service in a separate process. Its URL stays the same when the process is killed and started
// again, because the test forwards connections.
type keyAccessProcess struct {
	t        *testing.T
	name     string
	url, dir string
	key      wrapping.Key
	address  atomic.Pointer[string]
	process  *exec.Cmd

	mu  sync.Mutex
	log strings.Builder
}

func privatePEM(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func newKey(t *testing.T) []byte {
	t.Helper()
	key, err := issuer.NewKey(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	return privatePEM(t, key)
}

// newKeyAccessProcess makes the files of a service, and its URL.
func newKeyAccessProcess(t *testing.T, name string) *keyAccessProcess {
	t.Helper()
	k := &keyAccessProcess{t: t, name: name, dir: t.TempDir()}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // nothing was written that could be lost
	go k.forward(listener)
	k.url = "https://" + listener.Addr().String()
	server := httptest.NewTLSServer(nil) // for its certificate
	defer server.Close()
	text := newKey(t)
	if k.key, err = wrapping.ParseKey(text); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"tls", "keys"} {
		if err := os.Mkdir(filepath.Join(k.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(k.dir, "tls", "tls.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write(t, filepath.Join(k.dir, "tls", "tls.key"), string(privatePEM(t, server.TLS.Certificates[0].PrivateKey)))
	write(t, filepath.Join(k.dir, "keys", "ec-1.key"), string(text))
	write(t, filepath.Join(k.dir, "federation.key"), string(newKey(t)))
	return k
}

// forward connects clients with the process that runs at this time.
func (k *keyAccessProcess) forward(listener net.Listener) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return // the test has ended
		}
		go k.connect(from)
	}
}

// connect copies between a client and the process until one of them closes the connection.
func (k *keyAccessProcess) connect(from net.Conn) {
	end := func(conn net.Conn) { _ = conn.Close() } // the other end may have closed it
	defer end(from)
	address := k.address.Load()
	if address == nil {
		return
	}
	to, err := net.Dial("tcp", *address)
	if err != nil {
		return // the process was killed
	}
	defer end(to)
	go func() {
		defer end(from)
		defer end(to)
		_, _ = io.Copy(from, to) // either end may close the connection
	}()
	_, _ = io.Copy(to, from) // either end may close the connection
}

// configure writes the configuration, with the others as peers.
func (k *keyAccessProcess) configure(from *issuer.Issuer, others ...*keyAccessProcess) {
	authorities := write(k.t, filepath.Join(k.dir, "issuer.crt"), string(from.Authorities()))
	text := fmt.Sprintf(`url: %s
bindAddress: 127.0.0.1:0
statusBindAddress: "0"
certificateDir: %s/tls
keyDir: %s/keys
issuers:
- url: %s
  audiences: [key-access]
  authoritiesFile: %s
access:
  allowAllAuthenticated: true
federation:
  keyFiles: [%s/federation.key]
  retrySeconds: 1
  peers:
`, k.url, k.dir, k.dir, from.URL, authorities, k.dir)
	for _, other := range others {
		text += fmt.Sprintf("  - url: %s\n    authoritiesFile: %s/tls/tls.crt\n    timeoutSeconds: 60\n", other.url, other.dir)
	}
	write(k.t, filepath.Join(k.dir, "config.yaml"), text)
}

// start starts the process and waits until it listens.
func (k *keyAccessProcess) start() {
	k.t.Helper()
	k.process = exec.Command(os.Args[0], "-test.run=^"+k.t.Name()+"$")
	k.process.Env = append(os.Environ(), gatewayEnvironment+"="+filepath.Join(k.dir, "config.yaml"))
	log, err := k.process.StderrPipe()
	if err == nil {
		err = k.process.Start()
	}
	if err != nil {
		k.t.Fatal(err)
	}
	listening := make(chan string, 1)
	go func() {
		defer close(listening)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			k.mu.Lock()
			k.log.WriteString(lines.Text() + "\n")
			k.mu.Unlock()
			line := struct{ Msg, Address string }{}
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
				listening <- line.Address
			}
		}
	}()
	address, ok := <-listening
	if !ok {
		k.t.Fatalf("service %s has ended without listening: %s", k.name, k.logged())
	}
	k.address.Store(&address)
}

func (k *keyAccessProcess) logged() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.log.String()
}

// kill ends the process without a warning.
func (k *keyAccessProcess) kill() {
	_ = k.process.Process.Kill() // if this fails, the process has already ended
	_ = k.process.Wait()         // the error of a killed process
}

// share returns a share of a file's key for the service.
func (k *keyAccessProcess) share(body string, share []byte) *kas.KeyAccess {
	k.t.Helper()
	recipient, err := wrapping.NewRecipient(k.key.Public(), false)
	if err != nil {
		k.t.Fatal(err)
	}
	wrapped, err := recipient.Wrap(share)
	if err != nil {
		k.t.Fatal(err)
	}
	return &kas.KeyAccess{
		KeyType: "ec-wrapped", Kid: "ec-1", KasUrl: k.url, WrappedKey: wrapped, EphemeralPublicKey: recipient.SessionKey(),
		PolicyBinding: &kas.PolicyBinding{Algorithm: "HS256", Hash: binding(share, body)},
	}
}

// runIfService runs a key access service in the process that start has started, and does not return there.
func runIfService(t *testing.T) {
	t.Helper()
	if file := os.Getenv(gatewayEnvironment); file != "" {
		os.Exit(run(t.Context(), []string{"key-access", "--config", file}, os.LookupEnv, io.Discard, os.Stderr))
	}
}

// TestTwoOfThreeServicesAnswerWhenOneIsKilled has three services in processes of their own.
func TestTwoOfThreeServicesAnswerWhenOneIsKilled(t *testing.T) {
	runIfService(t)
	from := issuer.Start(t, issuer.Options{Audience: "key-access"})
	services := []*keyAccessProcess{newKeyAccessProcess(t, "first"), newKeyAccessProcess(t, "second"), newKeyAccessProcess(t, "third")}
	for i, service := range services {
		others := append(append([]*keyAccessProcess{}, services[:i]...), services[i+1:]...)
		service.configure(from, others...)
		service.start()
		t.Cleanup(service.kill)
	}
	client := newKeyAccessClient(t, from, services)
	if found := client.ask(); found != "permit permit permit" {
		t.Fatalf("found %s, and the log of the first %s", found, services[0].logged())
	}
	services[2].kill()
	late := time.After(2 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	// until asks until a result of the third service has a text.
	until := func(text string) {
		t.Helper()
		for {
			found := client.ask()
			if !strings.HasPrefix(found, "permit permit ") {
				t.Fatalf("found %s, expected the data keys of the first two services", found)
			}
			if strings.Contains(found, text) {
				return
			}
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("found %s, expected %q within two minutes; the log of the first is %s", found, text, services[0].logged())
			}
		}
	}
	// logs waits for a line, because the service may log after it has answered.
	logs := func(text string) {
		t.Helper()
		for !strings.Contains(services[0].logged(), text) {
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("expected %q within two minutes, found the log %s", text, services[0].logged())
			}
		}
	}
	until("is not asked for now")
	logs("gets no requests for now")
	services[2].start()
	until("permit permit permit")
	logs("gets requests again")
}

// keyAccessClient asks the first service for a share of each.
type keyAccessClient struct {
	t      *testing.T
	http   *http.Client
	prover issuer.Prover
	token  string
	url    string
	signed string
}

func newKeyAccessClient(t *testing.T, from *issuer.Issuer, services []*keyAccessProcess) *keyAccessClient {
	t.Helper()
	key, err := issuer.NewKey(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	recipient, err := issuer.NewKey(jose.RS256)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(recipient.Public())
	if err != nil {
		t.Fatal(err)
	}
	const body = "eyJib2R5Ijp7fX0=" // {"body":{}}
	wanted := &kas.UnsignedRewrapRequest_WithPolicyRequest{Policy: &kas.UnsignedRewrapRequest_WithPolicy{Id: "policy", Body: body}}
	for i, service := range services {
		share := []byte(strings.Repeat(string(rune('0'+i)), 32))
		wanted.KeyAccessObjects = append(wanted.KeyAccessObjects, &kas.UnsignedRewrapRequest_WithKeyAccessObject{KeyAccessObjectId: service.name, KeyAccessObject: service.share(body, share)})
	}
	text, err := protojson.Marshal(&kas.UnsignedRewrapRequest{
		ClientPublicKey: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		Requests:        []*kas.UnsignedRewrapRequest_WithPolicyRequest{wanted},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(nil) // only its client is used, which trusts its certificate
	t.Cleanup(server.Close)
	return &keyAccessClient{
		t: t, http: server.Client(), prover: issuer.Prover{Key: key, Algorithm: jose.ES256}, token: from.Token(from.Claims("alice", key)), url: services[0].url,
		signed: issuer.Sign(jose.JSONWebKey{Key: key, Algorithm: string(jose.ES256)}, map[string]any{}, map[string]any{"requestBody": string(text)}),
	}
}

// ask returns the state or the failure of each result.
func (c *keyAccessClient) ask() string {
	c.t.Helper()
	const procedure = "/kas.AccessService/Rewrap"
	in := connect.NewRequest(&kas.RewrapRequest{SignedRequestToken: c.signed})
	in.Header().Set("Authorization", "DPoP "+c.token)
	in.Header().Set("DPoP", c.prover.Proof(http.MethodPost, c.url+procedure, c.token))
	out, err := connect.NewClient[kas.RewrapRequest, kas.RewrapResponse](c.http, c.url+procedure).CallUnary(c.t.Context(), in)
	if err != nil {
		c.t.Fatal(err)
	}
	var found []string
	for _, result := range out.Msg.GetResponses()[0].GetResults() {
		if result.GetStatus() == "permit" {
			found = append(found, "permit")
			continue
		}
		found = append(found, result.GetError())
	}
	return strings.Join(found, " ")
}

func TestAWrongFederationIsRefusedWithASentence(t *testing.T) {
	key := write(t, filepath.Join(t.TempDir(), "federation.key"), string(newKey(t)))
	ed25519 := write(t, filepath.Join(t.TempDir(), "federation.key"), ed25519PEM(t))
	for name, c := range map[string]struct{ federation, part string }{
		"without a key":                   {"{peers: [{url: https://b.example}]}", "federation: keys: found none"},
		"with a key that is not there":    {"{keyFiles: [/nobody], peers: [{url: https://b.example}]}", "federation: keyFiles[0]: stat /nobody"},
		"with a key of another kind":      {"{keyFiles: [" + ed25519 + "], peers: [{url: https://b.example}]}", "expected ECDSA on P-256 or P-384"},
		"without peers":                   {"{keyFiles: [" + key + "]}", "peers: found 0, expected 1 to 64"},
		"with itself as a peer":           {"{keyFiles: [" + key + "], peers: [{url: http://127.0.0.1:8443}]}", "which is this service"},
		"with a peer twice":               {"{keyFiles: [" + key + "], peers: [{url: https://b.example}, {url: https://b.example}]}", "was found before"},
		"with a peer that is not secure":  {"{keyFiles: [" + key + "], peers: [{url: http://b.example}]}", "expected https"},
		"with a URL that has a path":      {"{keyFiles: [" + key + "], peers: [{url: https://b.example/x}]}", "expected one in normal form"},
		"with tokens of whoever has them": {"{keyFiles: [" + key + "], peers: [{url: https://b.example, issuers: [{url: https://i.example, audiences: [a], plainBearer: true}]}]}", "found plainBearer, expected none"},
		"with a time below zero":          {"{keyFiles: [" + key + "], peers: [{url: https://b.example, timeoutSeconds: -1}]}", "timeoutSeconds: found -1"},
	} {
		t.Run(name, func(t *testing.T) {
			var problem strings.Builder
			file := keyAccessConfig(t, "http://127.0.0.1:1", "access:", "federation: "+c.federation+"\naccess:")
			if code := run(t.Context(), []string{"key-access", "--config", file}, os.LookupEnv, io.Discard, &problem); code != program.ExitFailed || !strings.Contains(problem.String(), c.part) {
				t.Errorf("found the exit code %d and %s, expected %q", code, &problem, c.part)
			}
		})
	}
}

func ed25519PEM(t *testing.T) string {
	t.Helper()
	key, err := issuer.NewKey(jose.EdDSA)
	if err != nil {
		t.Fatal(err)
	}
	return string(privatePEM(t, key))
}

// binding binds a policy to a share.
func binding(share []byte, body string) string {
	mac := hmac.New(sha256.New, share)
	mac.Write([]byte(body))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
