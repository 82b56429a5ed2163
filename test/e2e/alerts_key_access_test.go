// SPDX-License-Identifier: Apache-2.0

//go:build e2e && alerts

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
	"github.com/crypto-broker/crypto-broker-operator/test/loopback"
)

// keyAccessService is a key access service in a process of its own, with one place for requests and no queue.
type keyAccessService struct {
	url, status string
	issuer      *issuer.Issuer
}

// startKeyAccessService runs a key access service with one place for requests until the test ends.
func startKeyAccessService(t *testing.T) *keyAccessService {
	t.Helper()
	return runKeyAccessService(t, "127.0.0.1", nil, `access:
  allowAllAuthenticated: true
limits:
  inFlight: 1
  queue: 0
`)
}

// startPolicyService runs a key access service that follows the policies of the operator's namespace, and makes a pod by which
// the operator finds it. No kubelet runs the pod: the process runs outside of the cluster, at an address that pods can reach.
func startPolicyService(t *testing.T) {
	t.Helper()
	host := hostAddress(t)
	s := runKeyAccessService(t, host, []string{"KUBECONFIG=" + shared.cluster.Kubeconfig}, "cluster: {namespace: "+environment.Namespace+"}\n")
	_, text, err := net.SplitHostPort(s.status)
	must(t, err)
	port, err := strconv.ParseUint(text, 10, 16)
	must(t, err)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "e2e-key-access", Labels: map[string]string{contract.ComponentLabel: contract.KeyAccessComponent}},
		Spec: corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{
			Name: "gateway", Image: "example.com/gateway", Ports: []corev1.ContainerPort{{Name: contract.KeyGatewayStatusPortName, ContainerPort: int32(port)}},
		}}},
	}
	must(t, shared.client.Create(t.Context(), pod))
	t.Cleanup(func() {
		must(t, client.IgnoreNotFound(shared.client.Delete(timeoutContext(t, time.Minute), pod, client.GracePeriodSeconds(0))))
	})
	pod.Status.PodIP, pod.Status.PodIPs = host, []corev1.PodIP{{IP: host}}
	must(t, shared.client.Status().Update(t.Context(), pod))
}

// runKeyAccessService builds the key gateway and runs it as a key access service with these settings until the test ends. Its
// ports are on an address of this machine.
func runKeyAccessService(t *testing.T, host string, variables []string, settings string) *keyAccessService {
	t.Helper()
	folder := t.TempDir()
	program := filepath.Join(folder, "gateway")
	_, err := environment.Command(t.Context(), shared.Repository, os.Stderr, "go", "build", "-o", program, "./cmd/gateway")
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	must(t, os.Mkdir(filepath.Join(folder, "keys"), 0o700))
	must(t, os.WriteFile(filepath.Join(folder, "keys", "ec-1.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), 0o600))
	address, err := loopback.Reserve(host)
	must(t, err)
	status, err := loopback.Reserve(host)
	must(t, err)
	s := &keyAccessService{url: "http://" + address, status: status, issuer: issuer.Start(t, issuer.Options{HTTP: true, Audience: "key-access"})}
	must(t, os.WriteFile(filepath.Join(folder, "config.yaml"), fmt.Appendf(nil, `url: %s/
bindAddress: %s
statusBindAddress: %s
insecurePlaintext: true
keyDir: %s/keys
issuers:
- url: %s
  audiences: [key-access]
  insecureLoopback: true
%s`, s.url, address, s.status, folder, s.issuer.URL, settings), 0o600))
	command := exec.Command(program, "key-access", "--config", filepath.Join(folder, "config.yaml"))
	log, err := os.Create(filepath.Join(folder, "log"))
	must(t, err)
	command.Stdout, command.Stderr, command.Env = log, log, append(os.Environ(), variables...)
	must(t, command.Start())
	t.Cleanup(func() {
		if t.Failed() {
			content, err := os.ReadFile(log.Name())
			t.Logf("the log of the key access service: %s %v", content, err)
		}
		must(t, command.Process.Kill())
		_ = command.Wait() // the error of a killed process
		must(t, log.Close())
	})
	eventually(t, patience, "the key access service answers", func() error {
		reply, err := http.Get("http://" + s.status + "/metrics")
		if err != nil {
			return err
		}
		return reply.Body.Close()
	})
	return s
}

// holdPoliciesBack creates an invalid policy while no webhook refuses it.
func holdPoliciesBack(t *testing.T, a *alerting) {
	startPolicyService(t)
	wrong := &v1alpha1.KeyAccessPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "e2e-wrong"}}
	wrong.Spec.Allow = []v1alpha1.KeyAccessRule{{Name: "one", When: "caller.isuer == 'x'"}}
	must(t, shared.client.Create(t.Context(), wrong))
	t.Cleanup(func() { must(t, client.IgnoreNotFound(shared.client.Delete(timeoutContext(t, time.Minute), wrong))) })
	a.expect(t, "CryptoBrokerKeyAccessHeldBack", "kind", "KeyAccessPolicy")
}

// provokeKeyAccess sends requests whose bodies come slowly, others that find no place meanwhile, and tokens with keys that the
// issuer does not have.
func provokeKeyAccess(t *testing.T, a *alerting, s *keyAccessService) {
	key, err := issuer.NewKey(jose.ES256)
	must(t, err)
	prover := issuer.Prover{Key: key, Algorithm: jose.ES256}
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer cancel()
	good := s.issuer.Token(s.issuer.Claims("alice", key))
	strange := s.issuer.Key()
	strange.KeyID = "nobody"
	unknown := issuer.Sign(strange, map[string]any{"typ": "at+jwt", "kid": "nobody"}, s.issuer.Claims("mallory", key))
	repeat := func(pause time.Duration, token string, body func() io.Reader) {
		clients.Go(func() {
			for ctx.Err() == nil {
				if err := s.rewrap(ctx, prover, token, body()); err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("the key access service does not answer: %v", err)
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	repeat(300*time.Millisecond, good, func() io.Reader { return &slowBody{ctx: ctx, left: 5} })
	repeat(100*time.Millisecond, unknown, func() io.Reader { return http.NoBody })
	a.expect(t, "CryptoBrokerKeyAccessErrors", "instance", s.status)
	a.expect(t, "CryptoBrokerKeyAccessSlow", "instance", s.status)
	a.expect(t, "CryptoBrokerKeyAccessMissesKeys", "instance", s.status)
}

// rewrap sends a request for data keys. It accepts any answer.
func (s *keyAccessService) rewrap(ctx context.Context, prover issuer.Prover, token string, body io.Reader) error {
	const path = "/kas/v2/rewrap"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "DPoP "+token)
	request.Header.Set("DPoP", prover.Proof(http.MethodPost, s.url+path, token))
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return reply.Body.Close()
}

// slowBody is a body of a few bytes, one each 100 ms.
type slowBody struct {
	ctx  context.Context
	left int
}

func (b *slowBody) Read(to []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	b.left--
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-time.After(100 * time.Millisecond):
	}
	to[0] = ' '
	return 1, nil
}
