// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package brokercertificates_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/brokercertificates"
	"github.com/crypto-broker/crypto-broker-operator/controllers/keygateway"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

const service = "crypto-broker-operator-key-gateway"

// ring gives the operator its signing keys.
type ring signing.Ring

func (r ring) Ring(context.Context) (signing.Ring, error) { return signing.Ring(r), nil }

// cluster has an operator with the rights that the chart gives.
type cluster struct {
	admin   client.Client
	access  *rest.Config // of the operator
	manager ctrl.Manager
	gateway *keygateway.Gateway
	records bytes.Buffer
	end     func()
}

// startCluster returns nil if the API server has no PodCertificateRequests. The chart refuses the
// value there.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	config := apiserver.StartFor(t)
	if !apiserver.ServesPodCertificates(t, config) {
		return nil
	}
	c := &cluster{}
	var err error
	if c.admin, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		t.Fatal(err)
	}
	if c.access, err = apiserver.OperatorAccess(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if err := apiserver.CreateFromChart(t.Context(), config, "templates/key-gateway/rbac.yaml", "keyGateway.enabled=true,keyGateway.brokerCertificates=issued"); err != nil {
		t.Fatal(err)
	}
	c.start(t)
	return c
}

func (c *cluster) start(t *testing.T) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if c.gateway, err = keygateway.New(c.access, keygateway.Options{Namespace: environment.Namespace, Service: service, Keys: ring(signing.NewRing(private))}); err != nil {
		t.Fatal(err)
	}
	records, err := audit.New(audit.Options{Output: audit.Stream(&c.records), Signer: private, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	scheme, skip := runtime.NewScheme(), true
	if err := errors.Join(certificatesv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c.manager, err = ctrl.NewManager(c.access, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{&certificatesv1.PodCertificateRequest{}: brokercertificates.CacheOptions()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(brokercertificates.Setup(c.manager, brokercertificates.Options{Signer: c.gateway, Audit: records}), c.manager.Add(c.gateway)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.manager.Start(ctx) }()
	c.end = func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		records.Close()
	}
}

// request returns the request that a kubelet creates for a pod of the namespace default.
func request(t *testing.T, key crypto.Signer) *certificatesv1.PodCertificateRequest {
	t.Helper()
	stub, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "req-"},
		Spec: certificatesv1.PodCertificateRequestSpec{
			SignerName: contract.BrokerSigner, PodName: "web-0", PodUID: "0f0e", ServiceAccountName: "app", ServiceAccountUID: "1", NodeName: "node", NodeUID: "2",
			MaxExpirationSeconds: new(int32(7 * 24 * 3600)), StubPKCS10Request: stub,
		},
	}
}

// decided creates a request and waits until it has a condition.
func (c *cluster) decided(t *testing.T, request *certificatesv1.PodCertificateRequest) (*certificatesv1.PodCertificateRequest, metav1.Condition) {
	t.Helper()
	if err := c.admin.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, "the request is decided", func() error {
		if err := c.admin.Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil {
			return err
		}
		if len(request.Status.Conditions) == 0 {
			return errors.New("it has no condition")
		}
		return nil
	})
	return request, request.Status.Conditions[0]
}

func newKey(t *testing.T, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestTheOperatorSignsCertificatesOfBrokers(t *testing.T) {
	c := startCluster(t)
	if c == nil {
		return
	}
	// The cluster's own time may be a moment ahead of the test's.
	const tolerance = time.Minute
	for sentence, test := range map[string]struct{ asked, lifetime time.Duration }{
		"for a day, although more was asked for": {7 * 24 * time.Hour, 24 * time.Hour},
		"for an hour, which is the least":        {time.Hour, time.Hour},
	} {
		t.Run(sentence, func(t *testing.T) {
			key := newKey(t, elliptic.P256())
			asked := request(t, key)
			asked.Spec.MaxExpirationSeconds = new(int32(test.asked / time.Second))
			found, condition := c.decided(t, asked)
			if condition.Type != "Issued" || condition.Status != metav1.ConditionTrue {
				t.Fatalf("found the condition %+v", condition)
			}
			block, rest := pem.Decode([]byte(found.Status.CertificateChain))
			if block == nil || len(rest) > 0 {
				t.Fatalf("found the chain %q, expected one certificate", found.Status.CertificateChain)
			}
			leaf, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(c.gateway.Authorities())
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
				t.Errorf("gateways refuse it: %v", err)
			}
			if !key.Public().(*ecdsa.PublicKey).Equal(leaf.PublicKey) || len(leaf.URIs) != 1 || leaf.URIs[0].String() != "crypto-broker://default/web-0/0f0e" {
				t.Errorf("found the names %v, or another key", leaf.URIs)
			}
			lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
			refresh := found.Status.BeginRefreshAt.Sub(leaf.NotBefore)
			if lifetime != test.lifetime || refresh != lifetime/3 || time.Since(leaf.NotBefore) > 5*time.Minute+tolerance {
				t.Errorf("it is valid for %s from %s, and renewed after %s", lifetime, leaf.NotBefore, refresh)
			}
		})
	}
	for sentence, test := range map[string]struct {
		request func() *certificatesv1.PodCertificateRequest
		reason  string
		want    string
	}{
		"a key of another type": {func() *certificatesv1.PodCertificateRequest {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			return request(t, key)
		}, "UnsupportedKeyType", "expected ECDSAP256"},
		"a key of another curve": {func() *certificatesv1.PodCertificateRequest { return request(t, newKey(t, elliptic.P384())) }, "UnsupportedKeyType", "expected ECDSAP256"},
		"annotations that it does not know": {func() *certificatesv1.PodCertificateRequest {
			asked := request(t, newKey(t, elliptic.P256()))
			asked.Spec.UnverifiedUserAnnotations = map[string]string{"example.com/name": "admin"}
			return asked
		}, "InvalidUnverifiedUserAnnotations", "expected none"},
	} {
		t.Run("denied is "+sentence, func(t *testing.T) {
			found, condition := c.decided(t, test.request())
			if condition.Type != "Denied" || condition.Reason != test.reason || !strings.Contains(condition.Message, test.want) || found.Status.CertificateChain != "" {
				t.Errorf("found the condition %+v and the chain %q", condition, found.Status.CertificateChain)
			}
		})
	}
	t.Run("requests of other signers are neither read nor may the operator sign them", func(t *testing.T) {
		other := request(t, newKey(t, elliptic.P256()))
		other.Spec.SignerName = "example.com/other"
		if err := c.admin.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		c.decided(t, request(t, newKey(t, elliptic.P256()))) // so that this cache is as recent as the other one
		if err := c.manager.GetClient().Get(t.Context(), client.ObjectKeyFromObject(other), &certificatesv1.PodCertificateRequest{}); !apierrors.IsNotFound(err) {
			t.Errorf("the cache has it: %v", err)
		}
		operator, err := client.New(c.access, client.Options{Scheme: clientgoscheme.Scheme})
		if err != nil {
			t.Fatal(err)
		}
		other.Status.Conditions = []metav1.Condition{{Type: "Denied", Status: metav1.ConditionTrue, Reason: "No", LastTransitionTime: metav1.Now()}}
		if err := operator.Status().Update(t.Context(), other); err == nil || !strings.Contains(err.Error(), `is not permitted to "sign" for signer`) {
			t.Errorf("the operator decides it: %v", err)
		}
	})
	c.end()
	if count := strings.Count(c.records.String(), `"result":"signed","k8s.namespace.name":"default","object.kind":"Pod","object.name":"web-0","certificate.sha256":`); count != 3 {
		t.Errorf("found %d records of signed certificates, want 3: %s", count, &c.records)
	}
	t.Run("what was asked for while the operator was away is signed when it is back", func(t *testing.T) {
		waiting := request(t, newKey(t, elliptic.P256()))
		if err := c.admin.Create(t.Context(), waiting); err != nil {
			t.Fatal(err)
		}
		c.start(t)
		defer c.end()
		apiserver.Eventually(t, "it is signed", func() error {
			if err := c.admin.Get(t.Context(), client.ObjectKeyFromObject(waiting), waiting); err != nil {
				return err
			}
			if waiting.Status.CertificateChain == "" {
				return fmt.Errorf("found %+v", waiting.Status)
			}
			return nil
		})
	})
}
