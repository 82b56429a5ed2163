// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// keyAccessConfig writes a configuration that is valid, in which a test replaces old by new.
func keyAccessConfig(t *testing.T, issuerURL, old, replacement string) string {
	t.Helper()
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	keyDir := filepath.Join(dir, "keys")
	if err := os.Mkdir(keyDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(keyDir, "ec-1.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	text := `url: http://127.0.0.1:8443/
bindAddress: 127.0.0.1:0
statusBindAddress: "0"
insecurePlaintext: true
keyDir: ` + keyDir + `
issuers:
- url: ` + issuerURL + `
  audiences: [key-access]
  insecureLoopback: true
access:
  allowAllAuthenticated: true
`
	if !strings.Contains(text, old) {
		t.Fatalf("the configuration has no %q", old)
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(text, old, replacement, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAKeyAccessServiceServesUntilItIsToldToEnd(t *testing.T) {
	file := keyAccessConfig(t, issuer.Start(t, issuer.Options{HTTP: true}).URL, `statusBindAddress: "0"`, `statusBindAddress: "0"`)
	address, end := serveKeyAccess(t, file)
	out, err := http.Get("http://" + address + "/kas/v2/kas_public_key")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	if text, err := io.ReadAll(out.Body); err != nil || !strings.Contains(string(text), `"kid":"ec-1"`) {
		t.Errorf("found %s, %v", text, err)
	}
	end()
}

// serveKeyAccess runs a service with a configuration. It returns its address, and what ends it.
func serveKeyAccess(t *testing.T, file string) (address string, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log, logTo := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"key-access", "--config", file}, os.LookupEnv, io.Discard, logTo)
		_ = logTo.Close() // ends the reader of the log
	}()
	lines := bufio.NewScanner(log)
	line := struct{ Msg, Address string }{}
	for line.Msg != "listening" {
		if !lines.Scan() {
			t.Fatal("the service has ended without listening")
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
	}
	rest := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(log) // the other end closes it
		rest <- string(text)
	}()
	return line.Address, func() {
		cancel()
		if found := <-code; found != program.ExitOK {
			t.Errorf("found the exit code %d: %s", found, <-rest)
		}
	}
}

func TestBeyondTheLimitOfConnectionsTheOneWithoutARequestEnds(t *testing.T) {
	file := keyAccessConfig(t, issuer.Start(t, issuer.Options{HTTP: true}).URL, "access:", "limits: {connections: 2}\naccess:")
	address, end := serveKeyAccess(t, file)
	defer end()
	dial := func() net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	ask := func(conn net.Conn) error {
		if _, err := io.WriteString(conn, "GET /kas/v2/kas_public_key HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			return err
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.Body.Close()
	}
	open := []net.Conn{dial(), dial()}
	for i, conn := range open {
		if err := ask(conn); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	// A client has its reply shortly before the service counts the request as ended. Until then, the service closes new connections.
	for deadline := time.Now().Add(time.Minute); ask(dial()) != nil; {
		if time.Now().After(deadline) {
			t.Fatal("a third connection is never served")
		}
	}
	served := 0
	for _, conn := range open {
		if ask(conn) == nil {
			served++
		}
	}
	if served != 1 {
		t.Errorf("%d of the two other connections are still served, expected one", served)
	}
}

func TestAWrongConfigurationOfAKeyAccessServiceIsRefusedWithASentence(t *testing.T) {
	for name, c := range map[string]struct{ old, replacement, part string }{
		"an unknown field":             {"keyDir:", "keysDir: /x\nkeyDir:", `unknown field "keysDir"`},
		"a URL with a path":            {":8443/", ":8443/kas", `url: found "http://127.0.0.1:8443/kas", expected the URL by which clients reach the service, with https and without a path`},
		"plaintext that is not said":   {"insecurePlaintext: true", "insecurePlaintext: false", `certificateDir: found "", expected the directory of tls.crt and tls.key`},
		"an address without a port":    {"127.0.0.1:0", "127.0.0.1", `bindAddress: found "127.0.0.1", expected an address with a port`},
		"no rules":                     {"allowAllAuthenticated: true", "allowAllAuthenticated: false", "access: found no rule, so that nobody may have a key"},
		"policies beside everybody":    {"access:", "policyDir: /x\naccess:", "access: found allowAllAuthenticated together with policies"},
		"resources beside everybody":   {"access:", "cluster: {namespace: keys}\naccess:", "access: found allowAllAuthenticated together with policies"},
		"policies of two places":       {"access:\n  allowAllAuthenticated: true", "policyDir: /x\ncluster: {namespace: keys}", "policyDir: found it together with cluster, expected policies of one place"},
		"resources of no namespace":    {"access:\n  allowAllAuthenticated: true", "cluster: {}", `cluster.namespace: found "", expected the name of the namespace`},
		"policies of a relative path":  {"access:\n  allowAllAuthenticated: true", "policyDir: x", `policyDir: found "x", expected the absolute path`},
		"records at two places":        {"access:", "audit: {file: /x, endpoint: 'http://c:4317'}\naccess:", "audit.endpoint: found it together with audit.file, expected one of the two"},
		"records at no URL":            {"access:", "audit: {endpoint: 'c:4317'}\naccess:", `audit.endpoint: found "c:4317", expected a URL of OTLP over gRPC`},
		"authorities without TLS":      {"access:", "audit: {endpoint: 'http://c', authoritiesFile: /x}\naccess:", `audit.endpoint: found "http://c" together with audit.authoritiesFile, expected a URL that begins with https://`},
		"authorities of no collector":  {"access:", "audit: {authoritiesFile: /x}\naccess:", "audit.authoritiesFile: found it without audit.endpoint"},
		"a limit of nothing":           {"access:", "limits: {objects: 0}\naccess:", `limits.objects: found "0", expected a number above 0`},
		"a queue without a wait":       {"access:", "limits: {queueSeconds: 0}\naccess:", "limits: found 64 calls in flight, 512 in the queue and a wait of 0s"},
		"tenants without a name":       {"access:", "limits: {tenantPerSecond: 1, tenantBurst: 1}\naccess:", "limits: found a rate of tenants or the claim that names them"},
		"a directory that is relative": {"keyDir: /", "keyDir: x/", "expected the absolute path of the directory of keys"},
	} {
		t.Run(name, func(t *testing.T) {
			var problem strings.Builder
			file := keyAccessConfig(t, "http://127.0.0.1:1", c.old, c.replacement)
			code := run(t.Context(), []string{"key-access", "--config", file}, os.LookupEnv, io.Discard, &problem)
			if code != program.ExitUsage || !strings.Contains(problem.String(), c.part) {
				t.Errorf("found the exit code %d and %s, expected %q", code, &problem, c.part)
			}
		})
	}
	for name, c := range map[string]struct{ old, replacement, part string }{
		"an issuer that is not secure":           {"insecureLoopback: true", "insecureLoopback: false", "expected https"},
		"a directory with other files":           {"/keys\n", "\n", `"config.yaml": expected a name such as rsa-1.key`},
		"policies that are not there":            {"access:\n  allowAllAuthenticated: true", "policyDir: /nobody", "policy directory: open /nobody"},
		"an authorities' file that is not there": {"insecureLoopback: true", "authoritiesFile: /nobody", "issuers[0].authoritiesFile: stat /nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			var problem strings.Builder
			file := keyAccessConfig(t, "http://127.0.0.1:1", c.old, c.replacement)
			if code := run(t.Context(), []string{"key-access", "--config", file}, os.LookupEnv, io.Discard, &problem); code != program.ExitFailed || !strings.Contains(problem.String(), c.part) {
				t.Errorf("found the exit code %d and %s, expected %q", code, &problem, c.part)
			}
		})
	}
}

func TestAKeyAccessServiceTakesPoliciesInRegoIfItIsToldTo(t *testing.T) {
	policies := t.TempDir()
	text := "apiVersion: cryptobroker.io/v1alpha1\nkind: KeyAccessPolicy\nmetadata: {name: p}\nspec:\n  rego: |\n    package keyaccess\n    allow if input.caller.bound\n"
	if err := os.WriteFile(filepath.Join(policies, "p.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file := keyAccessConfig(t, issuer.Start(t, issuer.Options{HTTP: true}).URL, "access:\n  allowAllAuthenticated: true", "policyDir: "+policies)
	ended, cancel := context.WithCancel(t.Context())
	cancel() // a service that starts ends at once
	for flag, c := range map[string]struct {
		code int
		part string
	}{
		"--rego":       {program.ExitOK, `"msg":"listening"`},
		"--rego=false": {program.ExitFailed, "p.yaml:5:9: spec.rego: found a module in Rego, which is off"},
	} {
		var said strings.Builder
		if code := run(ended, []string{"key-access", "--config", file, flag}, os.LookupEnv, io.Discard, &said); code != c.code || !strings.Contains(said.String(), c.part) {
			t.Errorf("%s: found the exit code %d and %s, expected %d and %q", flag, code, &said, c.code, c.part)
		}
	}
}
