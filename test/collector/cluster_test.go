// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package collector_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	webhookserver "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
	"github.com/crypto-broker/crypto-broker-operator/controllers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/changetrace"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
	"github.com/crypto-broker/crypto-broker-operator/controllers/keyproviders"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/webhook"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// cluster is an API server with two replicas of the operator: one answers the webhooks of
// profiles, and the other one is the leader.
type cluster struct{ client.WithWatch }

// startCluster starts a cluster whose operator exports spans to a collector.
func startCluster(t *testing.T, collector string) *cluster {
	t.Helper()
	log.SetLogger(logr.Discard())
	admin := apiserver.StartFor(t)
	admin.QPS = -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kubernetes, err := client.NewWithWatch(admin, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{kubernetes}
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: environment.Namespace}}); err != nil {
		t.Fatal(err)
	}
	c.startLeader(t, admin, scheme, collector)
	c.startWebhooks(t, admin, scheme, collector)
	return c
}

// changeTraces returns the tracer of changes for one replica.
func changeTraces(t *testing.T, collector, replica string) *changetrace.Tracer {
	t.Helper()
	settings := tracing.NewConfig()
	values := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": collector, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc", "OTEL_BSP_SCHEDULE_DELAY": "20",
		"OTEL_SERVICE_NAME": "crypto-broker-operator", "OTEL_RESOURCE_ATTRIBUTES": "k8s.pod.name=" + replica,
	}
	for _, v := range settings.Variables() {
		if value := values[v.Name]; value != "" {
			if err := v.Set(value); err != nil {
				t.Fatal(err)
			}
		}
	}
	spans, err := tracing.New(t.Context(), settings, tracing.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := spans.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return changetrace.New(spans)
}

// run runs a manager until the test ends.
func run(t *testing.T, mgr manager.Manager) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("a replica of the operator ended with: %v", err)
		}
	})
}

func (c *cluster) startLeader(t *testing.T, admin *rest.Config, scheme *runtime.Scheme, collector string) {
	t.Helper()
	skip := true // the test may run more than once
	mgr, err := ctrl.NewManager(admin, ctrl.Options{
		Scheme: scheme, Cache: controllers.CacheOptions(environment.Namespace), Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := signing.New(admin, signing.Options{
		Namespace: environment.Namespace, SecretName: "signing", Lifetime: signing.DefaultLifetime,
		Pods: mgr.GetClient(), Elected: mgr.Elected(), Events: mgr.GetEventRecorder(v1alpha1.FieldManager),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(keys); err != nil {
		t.Fatal(err)
	}
	asking := confirm.NewLoopbackClient()
	t.Cleanup(asking.Close)
	err = controllers.Setup(mgr, controllers.Options{
		OperatorNamespace: environment.Namespace, StatusPort: 9470, Annotate: true, Ask: asking.Ask, AskGateway: keyproviders.AskBy(asking),
		Keys: keys, Metrics: prometheus.NewRegistry(), Traces: changeTraces(t, collector, "leader"),
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, mgr)
	// The leader does not report the state that it finds at its start as a change. So the change of the test comes after the leader
	// has written a set.
	first := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"}}
	first.Spec.API.HashData = &v1alpha1.HashData{HashAlg: "sha-256"}
	if err := c.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, "the leader writes sets", func() error {
		return c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: v1alpha1.ProfilesConfigMap}, &corev1.ConfigMap{})
	})
}

func (c *cluster) startWebhooks(t *testing.T, admin *rest.Config, scheme *runtime.Scheme, collector string) {
	t.Helper()
	authority := newAuthority(t)
	certificate, key := authority.files(t, "webhook")
	host, port, err := net.SplitHostPort(reserve(t))
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(admin, ctrl.Options{
		Scheme: scheme, Cache: controllers.CacheOptions(environment.Namespace), Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhookserver.NewServer(webhookserver.Options{
			Host: host, Port: number, CertDir: filepath.Dir(certificate), CertName: filepath.Base(certificate), KeyName: filepath.Base(key),
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	err = webhook.Register(mgr, webhook.Options{
		OperatorNamespace: environment.Namespace, Traces: changeTraces(t, collector, "webhook"),
		Template: template.Template{Image: "example.com/broker:1", SocketGroup: 60471, StatusPort: 9470, Version: "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, mgr)
	apiserver.Eventually(t, "the webhooks are served", func() error { return mgr.GetWebhookServer().StartedChecker()(nil) })

	text, err := os.ReadFile("../../config/webhook/validating.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	if err := yaml.Unmarshal(text, &configuration); err != nil {
		t.Fatal(err)
	}
	trusted, err := os.ReadFile(authority.file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range configuration.Webhooks {
		to := &configuration.Webhooks[i].ClientConfig
		url := fmt.Sprintf("https://%s:%s%s", host, port, *to.Service.Path)
		*to = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: trusted}
	}
	if err := c.Create(t.Context(), &configuration); err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, "the API server calls them", func() error {
		wrong := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "wrong"}, Spec: wrongSpec()}
		if err := c.Create(t.Context(), wrong, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "denied the request") {
			return fmt.Errorf("a profile that does not compile is answered by %w", err)
		}
		return nil
	})
}

// wrongSpec returns a spec that the schema accepts and the webhook refuses.
func wrongSpec() v1alpha1.ProfileSpec {
	ecdsa := v1alpha1.KeyAlgorithms{ECDSA: &v1alpha1.ECDSAKeySize{MinKeySize: 256, MaxKeySize: 521}}
	return v1alpha1.ProfileSpec{API: v1alpha1.Operations{SignCertificate: &v1alpha1.SignCertificate{
		SignAlg: "ecdsa", HashAlg: "sha-512",
		Validity:        v1alpha1.Validity{ValidNotBeforeOffset: "-1h", ValidNotAfterOffset: "8760h"},
		KeyConstraints:  v1alpha1.CertificateKeyConstraints{Subject: ecdsa, Issuer: ecdsa},
		SubjectAltNames: &v1alpha1.SubjectAltNames{Rule: "patterns", IP: []string{"10.0.0.0/99"}},
	}}}
}

// expectUpdated waits until a profile says that so many brokers serve it.
func (c *cluster) expectUpdated(t *testing.T, p *v1alpha1.CryptoProfile, pods int32) {
	t.Helper()
	apiserver.Eventually(t, "all brokers serve the profile", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if p.Status.Pods != pods || p.Status.UpdatedPods != pods {
			return fmt.Errorf("%d of %d brokers serve it", p.Status.UpdatedPods, p.Status.Pods)
		}
		return nil
	})
}
