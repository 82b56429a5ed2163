// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package benchkeyaccess

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/go-jose/go-jose/v4"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
	"github.com/crypto-broker/crypto-broker-operator/test/moto"
)

// The time that the proxy adds to each request to the key manager.
const shortest, longest = 50 * time.Millisecond, 70 * time.Millisecond

// region is the region of the key manager.
const region = "eu-central-1"

// provider is a key manager far away: a proxy in front of it adds time to each request, and counts.
type provider struct {
	server *httptest.Server

	mu       sync.Mutex
	requests map[string]int // by operation
	took     time.Duration
}

// newProvider returns a provider in front of the key manager with a URL.
func newProvider(t testing.TB, manager string) *provider {
	t.Helper()
	to, err := url.Parse(manager)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{requests: map[string]int{}}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		far := time.NewTimer(shortest + rand.N(longest-shortest)) //nolint:gosec // no secret
		defer far.Stop()
		select {
		case <-far.C:
			proxy.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		p.requests[operation]++
		p.took += time.Since(began)
	}))
	t.Cleanup(p.server.Close)
	return p
}

// count returns how many requests there were, and how long they took together.
func (p *provider) count() (requests int, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.requests {
		requests += n
	}
	return requests, p.took
}

// service is a key access service in a process of its own, with its own provider.
type service struct {
	url, status, dir string
	provider         *provider
	key              wrapping.Key // the public key, to wrap for
	process          *exec.Cmd
	ended            chan struct{} // closed when the process has ended
	log              *bytes.Buffer // read after that
}

// settings are what differs between measurements.
type settings struct {
	services int
	// kept reports whether the service caches data keys, and known whether it caches the description of a key.
	kept, known bool
	// plain says that callers need no proof.
	plain bool
}

// rig has the programs and servers that all measurements share. Each service has its own key manager in a separate process.
type rig struct {
	program  string
	managers []string
	from     *issuer.Issuer
	server   *httptest.Server // for its certificate
}

// free returns a port on which nothing listens.
func free(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // nobody has connected
	return listener.Addr().String()
}

// newRig builds the gateway, and starts an issuer, and key managers for some services.
func newRig(b *testing.B, services int) *rig {
	b.Helper()
	repository, err := environment.Repository()
	if err != nil {
		b.Fatal(err)
	}
	r := &rig{program: filepath.Join(b.TempDir(), "gateway"), from: issuer.Start(b, issuer.Options{Audience: "key-access"}), server: httptest.NewTLSServer(nil)}
	b.Cleanup(r.server.Close)
	if _, err := environment.Command(b.Context(), repository, os.Stderr, "go", "build", "-o", r.program, "./cmd/gateway"); err != nil {
		b.Fatal(err)
	}
	for range services {
		r.managers = append(r.managers, moto.Start(b))
	}
	return r
}

// start starts services that are peers of each other. They end with the function that it returns. Another program may take a free
// port before the service does. So a service that ends is started again with other ports.
func (r *rig) start(b *testing.B, s settings) (started []*service, stop func()) {
	b.Helper()
	const attempts = 5
	for range attempts {
		var failed string
		if started, stop, failed = r.try(b, s); failed == "" {
			return started, stop
		}
		stop()
		fmt.Fprintln(os.Stderr, failed)
	}
	b.Fatalf("the services have not started in %d attempts", attempts)
	return nil, nil
}

// try starts services once. failed says why one has ended.
func (r *rig) try(b *testing.B, s settings) (started []*service, stop func(), failed string) {
	b.Helper()
	for _, manager := range r.managers[:s.services] {
		started = append(started, r.prepare(b, s, manager))
	}
	for i, own := range started {
		others := append(append([]*service{}, started[:i]...), started[i+1:]...)
		r.configure(b, own, s, others)
		r.run(b, own)
	}
	for _, own := range started {
		if !own.await(b) {
			failed = "a service has ended:\n" + own.log.String()
			break
		}
	}
	return started, func() {
		for _, own := range started {
			_ = own.process.Process.Kill() // it has nothing to lose, and may have ended
			<-own.ended
			own.provider.server.Close()
		}
	}, failed
}

func write(b *testing.B, content string, path ...string) {
	b.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		b.Fatal(err)
	}
}

func privatePEM(b *testing.B, key any) string {
	b.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		b.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// prepare makes the key of a service in its key manager, and its files.
func (r *rig) prepare(b *testing.B, s settings, manager string) *service {
	b.Helper()
	own := &service{url: "https://" + free(b), status: free(b), dir: b.TempDir(), provider: newProvider(b, manager), log: &bytes.Buffer{}}
	admin := kms.NewFromConfig(aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")}, func(o *kms.Options) { o.BaseEndpoint = &manager })
	made, err := admin.CreateKey(b.Context(), &kms.CreateKeyInput{KeySpec: types.KeySpecRsa2048, KeyUsage: types.KeyUsageTypeEncryptDecrypt})
	if err != nil {
		b.Fatal(err)
	}
	write(b, "aws/"+*made.KeyMetadata.KeyId+"\n", own.dir, "keys", "rsa-1.ref")
	known := "1m"
	if !s.known {
		known = "-1s"
	}
	write(b, fmt.Sprintf("Providers:\n- Name: aws\n  Type: aws-kms\n  Endpoints: [%q]\n  AWSKMS: {Region: %s}\n  CacheTime: %s\n  Connections: {Max: 32}\n",
		own.provider.server.URL, region, known), own.dir, "providers", "Providers.yaml")
	write(b, "id", own.dir, "providers", "aws", "aws_access_key_id")
	write(b, "secret", own.dir, "providers", "aws", "aws_secret_access_key")
	write(b, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})), own.dir, "tls", "tls.crt")
	write(b, privatePEM(b, r.server.TLS.Certificates[0].PrivateKey), own.dir, "tls", "tls.key")
	signing, err := issuer.NewKey(jose.ES256)
	if err != nil {
		b.Fatal(err)
	}
	write(b, privatePEM(b, signing), own.dir, "federation.key")
	write(b, string(r.from.Authorities()), own.dir, "issuer.crt")
	return own
}

// configure writes the configuration of a service.
func (r *rig) configure(b *testing.B, own *service, s settings, others []*service) {
	b.Helper()
	text := fmt.Sprintf(`url: %s
bindAddress: %s
statusBindAddress: %s
certificateDir: %s/tls
keyDir: %s/keys
keyProvidersDir: %s/providers
dataKeyCache: %t
issuers:
- url: %s
  audiences: [key-access]
  plainBearer: %t
  authoritiesFile: %s/issuer.crt
access:
  allowWithoutAttributes: true
`, own.url, strings.TrimPrefix(own.url, "https://"), own.status, own.dir, own.dir, own.dir, s.kept, r.from.URL, s.plain, own.dir)
	if len(others) > 0 {
		text += fmt.Sprintf("federation:\n  keyFiles: [%s/federation.key]\n  peers:\n", own.dir)
	}
	for _, other := range others {
		text += fmt.Sprintf("  - url: %s\n    authoritiesFile: %s/tls/tls.crt\n    timeoutSeconds: 60\n", other.url, other.dir)
	}
	write(b, text, own.dir, "config.yaml")
}

// run starts the process of a service.
func (r *rig) run(b *testing.B, own *service) {
	b.Helper()
	own.process = exec.Command(r.program, "key-access", "--config", filepath.Join(own.dir, "config.yaml"))
	own.process.Stderr = own.log
	if err := own.process.Start(); err != nil {
		b.Fatal(err)
	}
	own.ended = make(chan struct{})
	go func() {
		defer close(own.ended)
		_ = own.process.Wait() // it is killed, or its log says why it has ended
	}()
}

// await waits until a service is ready, and reads its public key. It reports whether the service still runs.
func (s *service) await(b *testing.B) bool {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	go func() { // another program that has the port may never answer
		select {
		case <-s.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		reply, err := get(ctx, "http://"+s.status+"/readyz")
		if err == nil {
			_ = reply.Close() // nothing was written
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return false
			}
			b.Fatalf("the service is not ready: %v", err)
		}
	}
	public, err := client.Get(s.url + "/kas/kas_public_key")
	if err != nil {
		b.Fatal(err)
	}
	defer public.Body.Close()
	text, err := io.ReadAll(public.Body)
	if err != nil {
		b.Fatal(err)
	}
	s.key = publicKey(strings.ReplaceAll(strings.Trim(strings.TrimSpace(string(text)), `"`), `\n`, "\n"))
	return true
}

// publicKey is a key of a service, to wrap for.
type publicKey string

// Algorithm implements wrapping.Key.
func (publicKey) Algorithm() wrapping.Algorithm { return wrapping.RSA2048 }

// Public implements wrapping.Key.
func (k publicKey) Public() string { return string(k) }

// Unwrap implements wrapping.Key. Nobody calls it.
func (publicKey) Unwrap(context.Context, wrapping.Wrapped) ([]byte, error) { return nil, nil }

// client has connections to all services. They are in this process, so nobody else has the certificate.
var client = &http.Client{Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, //nolint:gosec // loopback of a measurement
}}

func get(ctx context.Context, url string) (io.ReadCloser, error) {
	in, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	out, err := client.Do(in)
	if err != nil {
		return nil, err
	}
	if out.StatusCode != http.StatusOK {
		defer out.Body.Close()
		text, _ := io.ReadAll(out.Body) // the status says enough without it
		return nil, fmt.Errorf("status %d: %s", out.StatusCode, text)
	}
	return out.Body, nil
}

// metrics returns the metrics of a service that begin with a prefix, by their names and labels.
func (s *service) metrics(b *testing.B) map[string]float64 {
	b.Helper()
	body, err := get(b.Context(), "http://"+s.status+"/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer body.Close()
	found := map[string]float64{}
	for lines := bufio.NewScanner(body); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if number, err := strconv.ParseFloat(value, 64); ok && err == nil {
			found[name] = number
		}
	}
	return found
}
