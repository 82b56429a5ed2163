// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

func TestHelpOfKMSNamesEveryFlag(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"kms", "--help"}, nothing, &stdout, &stderr); code != program.ExitOK || stderr.Len() > 0 {
		t.Fatalf("exit code %d, %s", code, stderr.String())
	}
	(&kmsConfig{}).flags().VisitAll(func(flag *pflag.Flag) {
		if !strings.Contains(stdout.String(), "--"+flag.Name+" ") {
			t.Errorf("--%s is not in the help:\n%s", flag.Name, stdout.String())
		}
	})
}

func TestAWrongValueOfKMSIsOneClearSentence(t *testing.T) {
	const good = "--key=bao/cluster-secrets"
	if _, err := parseKMS([]string{good}); err != nil {
		t.Fatalf("good flags: %v", err)
	}
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"no key":                    {nil, `--key is "", expected the name of a key provider, a slash and the id of a key`},
		"a key without a provider":  {[]string{"--key=cluster-secrets"}, `--key and --old-keys: found "cluster-secrets", expected the name of a key provider, a slash and the id of a key`},
		"a key that is old and new": {[]string{good, "--old-keys=bao/cluster-secrets"}, `--key and --old-keys: found the key "bao/cluster-secrets" twice`},
		"a relative directory":      {[]string{good, "--key-providers-dir=providers"}, `--key-providers-dir is "providers", expected an absolute path`},
		"a relative socket":         {[]string{good, "--socket-dir=run"}, `--socket-dir: socket directory "run": expected an absolute path`},
		"a group that is no id":     {[]string{good, "--socket-group=-2"}, `--socket-group is -2, expected the id of a group, or -1 for none`},
		"a port that is no address": {[]string{good, "--status-bind-address=8082"}, `--status-bind-address is "8082", expected an address with a port`},
		"another TLS":               {[]string{good, "--tls-provider=gnutls"}, `--tls-provider is "gnutls", expected go or openssl`},
		"another level":             {[]string{good, "--log-level=trace"}, `--log-level is "trace", expected debug, info, warn or error`},
		"an argument":               {[]string{good, "serve"}, `unexpected argument "serve", expected flags only`},
	} {
		t.Run(sentence, func(t *testing.T) {
			var stderr bytes.Buffer
			code := run(t.Context(), append([]string{"kms"}, test.args...), nothing, io.Discard, &stderr)
			if code != program.ExitUsage || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("exit code %d: %s\nwant %s", code, stderr.String(), test.want)
			}
		})
	}
}

// statusAddress is in the line of the log about the status port.
var statusAddress = regexp.MustCompile(`"msg":"the status port is open","address":"([^"]+)"`)

func TestKMSServesItsSocketBeforeItsKeyProvidersAreThere(t *testing.T) {
	dir, err := os.MkdirTemp("", "kms") // the path of a socket is short, and TempDir has the name of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c, err := parseKMS([]string{"--key=bao/cluster-secrets", "--key-providers-dir=" + filepath.Join(dir, "none"), "--socket-dir=" + filepath.Join(dir, "s"), "--status-bind-address=127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	log := &logBuffer{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveKMS(ctx, c, keyProviders, slog.New(slog.NewJSONHandler(log, nil))) }()

	socket := filepath.Join(dir, "s", contract.SocketFile)
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	waiting, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	found, err := kmsapi.NewKeyManagementServiceClient(connection).Status(waiting, &kmsapi.StatusRequest{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	const want = `the key provider "bao" is not in the directory of key providers, or could not be opened`
	if found.GetHealthz() != want || found.GetKeyId() != "" {
		t.Errorf("found the status %v, want %q without a key id", found, want)
	}
	for path, mode := range map[string]os.FileMode{filepath.Dir(socket): 0o700, socket: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has the mode %v, error %v, want %v", path, info.Mode().Perm(), err, mode)
		}
	}

	address := statusAddress.FindStringSubmatch(log.String())
	if address == nil {
		t.Fatalf("the log does not name the status port:\n%s", log.String())
	}
	for path, test := range map[string]struct {
		code int
		want string
	}{
		contract.HealthPath:  {http.StatusOK, "ok"},
		contract.ReadyPath:   {http.StatusServiceUnavailable, "not ready: " + want},
		contract.MetricsPath: {http.StatusOK, "crypto_broker_gateway_kms_healthy 0\n"},
	} {
		response, err := http.Get("http://" + address[1] + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != test.code || !strings.Contains(string(body), test.want) {
			t.Errorf("%s: status %d, %v\n%s", path, response.StatusCode, err, body)
		}
		if path == contract.MetricsPath && !strings.Contains(string(body), `crypto_broker_gateway_kms_requests_total{code="OK",method="Status"} 1`+"\n") {
			t.Errorf("the metrics do not count the request:\n%s", body)
		}
	}

	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("after the end, the socket is there: %v", err)
	}
}

// logBuffer is a log that several goroutines write to.
type logBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
