// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	kmsapi "k8s.io/kms/apis/v2"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

func TestHelpOfKMSNamesEveryFlag(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"kms", "--help"}, noVariables, &stdout, &stderr); code != program.ExitOK || stderr.Len() > 0 {
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
			code := run(t.Context(), append([]string{"kms"}, test.args...), noVariables, io.Discard, &stderr)
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

// block returns the content of a block of code in docs/kubernetes-kms.md that begins with a comment.
func block(t *testing.T, language, comment string) string {
	t.Helper()
	repository, err := environment.Repository()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(repository, "docs", "kubernetes-kms.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```"+language+"\n"+comment)
	content, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("docs/kubernetes-kms.md has no block that begins with %q", comment)
	}
	return content
}

// The manifest, the configuration of the key provider and the configuration of the API server belong
// together.
func TestTheExamplesOfTheKMSPluginFitEachOther(t *testing.T) {
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(block(t, "yaml", "# /etc/kubernetes/manifests/crypto-broker-kms.yaml\n")), &pod); err != nil {
		t.Fatal(err)
	}
	container := &pod.Spec.Containers[0]
	if container.Args[0] != "kms" {
		t.Fatalf("found the arguments %q", container.Args)
	}
	c, err := parseKMS(container.Args[1:])
	if err != nil {
		t.Fatal(err)
	}
	for path, readOnly := range map[string]bool{c.providersDir: true, c.socketDir: false} {
		mount := slices.IndexFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path && m.ReadOnly == readOnly })
		if mount < 0 {
			t.Fatalf("found no mount of %s, read only %t", path, readOnly)
		}
		name := container.VolumeMounts[mount].Name
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name && v.HostPath != nil && v.HostPath.Path == path }) {
			t.Errorf("the volume %s is not the node's %s", name, path)
		}
	}
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
		if found := net.JoinHostPort(probe.HTTPGet.Host, probe.HTTPGet.Port.String()); found != c.statusAddress {
			t.Errorf("a probe asks %s, and the status port is %s", found, c.statusAddress)
		}
	}
	configs, err := providers.Parse([]byte(block(t, "yaml", "# /etc/crypto-broker/key-providers/Providers.yaml\n")))
	if err != nil {
		t.Fatal(err)
	}
	if provider, _ := keys.SplitID(c.key); configs[0].Name != provider {
		t.Errorf("the key is %s, and the provider is called %s", c.key, configs[0].Name)
	}
	var encryption apiserverv1.EncryptionConfiguration
	if err := yaml.UnmarshalStrict([]byte(block(t, "yaml", "# /etc/kubernetes/encryption.yaml\n")), &encryption); err != nil {
		t.Fatal(err)
	}
	plugin := encryption.Resources[0].Providers[0].KMS
	if want := "unix://" + filepath.Join(c.socketDir, contract.SocketFile); plugin.Endpoint != want || plugin.APIVersion != "v2" {
		t.Errorf("the API server uses version %s at %s, want v2 at %s", plugin.APIVersion, plugin.Endpoint, want)
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
