// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/openbao"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/controllers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
	"github.com/crypto-broker/crypto-broker-operator/controllers/keyproviders"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

// bao is a server at one address that answers health checks like OpenBao.
type bao struct {
	address, certificates, authority string
	stop                             func()
}

func startBao(t *testing.T) *bao {
	t.Helper()
	b := &bao{address: "127.0.0.1:0", certificates: t.TempDir()}
	b.authority = issue(t, b.certificates)
	b.start(t)
	t.Cleanup(func() { b.stop() })
	return b
}

// start starts the server again.
func (b *bao) start(t *testing.T) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(b.certificates+"/tls.crt", b.certificates+"/tls.key")
	if err != nil {
		t.Fatal(err)
	}
	var network net.ListenConfig
	listener, err := network.Listen(t.Context(), "tcp", b.address)
	if err != nil {
		t.Fatal(err)
	}
	b.address = listener.Addr().String()
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/sys/health" {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			fmt.Fprint(w, `{"version":"2.5.9"}`)
		}),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13},
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.ServeTLS(listener, "", "") // stop ends the server
	}()
	b.stop = sync.OnceFunc(func() {
		_ = server.Close()
		<-ended
	})
}

// operator writes the status of key providers with the operator's rights. It counts its requests to the API server, except watches,
// and its requests to gateways.
type operator struct {
	requests, asked atomic.Int64
	metrics         *prometheus.Registry
}

// counting counts the requests of a client that are not to watch.
type counting struct {
	http.RoundTripper
	count *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		c.count.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

func startOperator(t *testing.T) *operator {
	t.Helper()
	o := &operator{metrics: prometheus.NewRegistry()}
	config := rest.CopyConfig(operatorAccess)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, &o.requests} })
	skip := true // the test may run more than once
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: controllers.CacheOptions(operatorNamespace), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	asking := confirm.NewLoopbackClient()
	ask := keyproviders.AskBy(asking)
	options := keyproviders.Options{
		OperatorNamespace: operatorNamespace, Metrics: o.metrics, Interval: 300 * time.Millisecond,
		Ask: func(ctx context.Context, address netip.AddrPort, etag string) (*providerreport.Report, string, error) {
			defer o.asked.Add(1)
			return ask(ctx, address, etag)
		},
	}
	if err := errors.Join(keyproviders.Setup(mgr, options), keyproviders.SetupKeyAccess(mgr, options)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the operator ended with %v", err)
		}
		asking.Close()
	})
	return o
}

// register makes the pod by which the operator finds a gateway.
func register(t *testing.T, g *process) {
	t.Helper()
	registerAt(t, contract.KeyGatewayComponent, g.status.listener.Addr())
}

// registerAt makes the pod by which the operator finds the status port of a component.
func registerAt(t *testing.T, component string, status net.Addr) {
	t.Helper()
	address := netip.MustParseAddrPort(status.String())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: component + "-1", Labels: map[string]string{contract.ComponentLabel: component}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "gateway", Image: "example.com/gateway", Ports: []corev1.ContainerPort{{Name: contract.KeyGatewayStatusPortName, ContainerPort: int32(address.Port())}},
		}}},
	}
	create(t, pod)
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Error(err)
		}
	})
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address.Addr().String(), PodIPs: []corev1.PodIP{{IP: address.Addr().String()}}}
	if err := admin.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// expectStatus waits until Ready has a status and a reason, and the message of Ready has a text.
func expectStatus(t *testing.T, p *v1alpha1.KeyProvider, want, text string) {
	t.Helper()
	apiserver.Eventually(t, "the key provider has Ready "+want, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || string(c.Status)+" "+c.Reason != want || c.ObservedGeneration != p.Generation || p.Status.ObservedGeneration != p.Generation || !strings.Contains(c.Message, text) {
			return fmt.Errorf("found %+v", p.Status)
		}
		return nil
	})
}

func TestTheStatusOfAKeyProviderFollowsItsSecretAndItsServer(t *testing.T) {
	certificates := t.TempDir()
	issue(t, certificates)
	g := startGateway(t, certificates, write(t, certificates+"/keys", public(1)), providers.Types{providers.OpenBao: openbao.Open})
	register(t, g.process)
	o := startOperator(t)
	server := startBao(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "status-"}}
	create(t, namespace)
	key := metav1.ObjectMeta{Namespace: namespace.Name, Name: "bao"}
	p := &v1alpha1.KeyProvider{ObjectMeta: key, Spec: v1alpha1.KeyProviderSpec{
		Type: providers.OpenBao, Endpoints: []v1alpha1.KeyEndpoint{v1alpha1.KeyEndpoint("https://" + server.address)},
		Credentials: &v1alpha1.KeyProviderCredentials{SecretRef: v1alpha1.SecretReference{Name: "bao"}},
		Connections: &v1alpha1.KeyProviderConnections{IdleTime: "400ms"},
	}}
	create(t, p)
	if p.Status.ObservedGeneration != -1 {
		t.Errorf("a new provider has observedGeneration %d, expected -1, for tools that wait", p.Status.ObservedGeneration)
	}
	expectStatus(t, p, "False SecretForbidden", `the Secret "bao" in namespace "`+namespace.Name+`"`)

	create(t,
		&rbacv1.Role{ObjectMeta: key, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"bao"}, Verbs: []string{"get", "watch"}}}},
		&rbacv1.RoleBinding{ObjectMeta: key, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "bao"}})
	expectStatus(t, p, "False SecretNotFound", "Create it.")
	secret := &corev1.Secret{ObjectMeta: key, Data: map[string][]byte{"token": []byte("t0ken"), "ca.crt": []byte("hunter2")}}
	create(t, secret)
	expectStatus(t, p, "False InvalidCredentials", "ca.crt has no certificate")

	change := func(authority string) {
		t.Helper()
		secret.Data["ca.crt"] = []byte(authority)
		if err := admin.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	change(issue(t, t.TempDir()))
	expectStatus(t, p, "False Unreachable", server.address+": its certificate is not valid for ca.crt")
	change(server.authority)
	expectStatus(t, p, "True AllReachable", "")
	if e := p.Status.Endpoints[0]; e.State != v1alpha1.EndpointReachable || e.Version != "2.5.9" || e.Connections != 1 || e.ReachedBy != 1 || e.Latency == "" || p.Status.Reachable != "1/1" {
		t.Errorf("the status is %+v", p.Status)
	}
	if p.Status.SecretVersion != secret.ResourceVersion {
		t.Errorf("the version of the Secret is %s, expected %s", p.Status.SecretVersion, secret.ResourceVersion)
	}
	if values := o.ready(t, p); !slices.Equal(values, []float64{1}) {
		t.Errorf("the metric is %v, expected 1", values)
	}

	// While nothing changes, the operator sends requests only to gateways.
	requests, asked, version := o.settled(t), o.asked.Load(), p.ResourceVersion
	apiserver.Eventually(t, "the gateway was asked ten times more", func() error {
		if n := o.asked.Load() - asked; n < 10 {
			return fmt.Errorf("it was asked %d times", n)
		}
		return nil
	})
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	if n := o.requests.Load() - requests; n != 0 || p.ResourceVersion != version {
		t.Errorf("the operator made %d requests while nothing changed, expected none", n)
	}

	server.stop()
	expectStatus(t, p, "False Unreachable", server.address+": the gateway cannot connect to it")
	server.start(t)
	expectStatus(t, p, "True AllReachable", "")
	expectEvents(t, p, "Normal AllReachable", "Normal CredentialsChanged", "Normal Opened", "Warning InvalidCredentials", "Warning SecretForbidden", "Warning SecretNotFound", "Warning Unreachable")

	if err := admin.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, "the metric of a provider that is deleted ends", func() error {
		if values := o.ready(t, p); len(values) != 0 {
			return fmt.Errorf("it is %v", values)
		}
		return nil
	})
}

// settled waits until the events about earlier changes are written, and returns the number of requests.
func (o *operator) settled(t *testing.T) int64 {
	t.Helper()
	count, asked := int64(-1), o.asked.Load()
	apiserver.Eventually(t, "the operator makes no requests between ten questions", func() error {
		if now := o.asked.Load(); now < asked+10 {
			return errors.New("fewer were asked")
		} else if before := count; true {
			count, asked = o.requests.Load(), now
			if before != count {
				return errors.New("there were requests")
			}
		}
		return nil
	})
	return count
}

// ready returns the values of the operator's metric of a key provider.
func (o *operator) ready(t *testing.T, p *v1alpha1.KeyProvider) (values []float64) {
	t.Helper()
	families, err := o.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if labels := m.String(); strings.Contains(labels, p.Namespace) && strings.Contains(labels, string(p.UID)) {
				values = append(values, m.GetGauge().GetValue())
			}
		}
	}
	return values
}

// expectEvents waits until there are events of these types and reasons about a provider, and no
// others. None of the events has any part of the Secret.
func expectEvents(t *testing.T, p *v1alpha1.KeyProvider, want ...string) {
	t.Helper()
	apiserver.Eventually(t, "the events are as expected", func() error {
		var all eventsv1.EventList
		if err := admin.List(t.Context(), &all, client.InNamespace(p.Namespace)); err != nil {
			return err
		}
		var found []string
		for _, e := range all.Items {
			found = append(found, e.Type+" "+e.Reason)
			if strings.Contains(e.Note, "hunter2") || strings.Contains(e.Note, "t0ken") {
				t.Errorf("an event has a credential: %s", e.Note)
			}
		}
		slices.Sort(found)
		if found = slices.Compact(found); !slices.Equal(found, want) {
			return fmt.Errorf("found %q, expected %q", found, want)
		}
		return nil
	})
}
