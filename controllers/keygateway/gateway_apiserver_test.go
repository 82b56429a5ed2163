// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package keygateway_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/keygateway"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

const (
	service       = "crypto-broker-operator-key-gateway"
	signingSecret = "crypto-broker-operator-signing"
)

var (
	admin client.Client
	// operator is the configuration with the rights that the chart gives the operator.
	operator *rest.Config
)

func TestMain(m *testing.M) {
	os.Exit(apiserver.Run(m, func(config *rest.Config) (err error) {
		if admin, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
			return err
		}
		if operator, err = apiserver.OperatorAccess(context.Background(), config); err != nil {
			return err
		}
		return apiserver.CreateFromChart(context.Background(), config, "templates/key-gateway/rbac.yaml", "keyGateway.enabled=true")
	}))
}

// later is a clock that is ahead of the real one.
type later struct {
	clock.RealClock
	by *atomic.Int64 // time.Duration
}

func (c later) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.by.Load())) }

// leader runs the tasks of the leading operator for gateways until the test ends.
type leader struct {
	*keygateway.Gateway
	keys *signing.Keys
	// ahead is how far its clock is ahead.
	ahead atomic.Int64
	told  atomic.Int64
}

func startLeader(t *testing.T) *leader {
	t.Helper()
	t.Cleanup(func() { // for a test that begins with nothing
		for _, object := range []client.Object{configMap(), secretNamed(service + "-ca"), secretNamed(service + "-tls"), secretNamed(signingSecret)} {
			if err := admin.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		}
	})
	elected := make(chan struct{})
	close(elected)
	l := &leader{}
	var err error
	l.keys, err = signing.New(operator, signing.Options{
		Namespace: environment.Namespace, SecretName: signingSecret, Lifetime: signing.DefaultLifetime, Pods: admin, Elected: elected,
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Gateway, err = keygateway.New(operator, keygateway.Options{Namespace: environment.Namespace, Service: service, Keys: l.keys, Clock: later{by: &l.ahead}})
	if err != nil {
		t.Fatal(err)
	}
	l.keys.OnChange(func(context.Context) { l.KeysChanged() })
	l.OnChange(func(context.Context) { l.told.Add(1) })
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	for _, start := range []func(context.Context) error{l.keys.Start, l.Start} {
		go func() { ended <- start(ctx) }()
	}
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
	return l
}

// inOrder returns an error unless the objects for gateways are as they have to be.
func (l *leader) inOrder(ctx context.Context) error {
	published, secret := configMap(), secretNamed(service+"-tls")
	err := errors.Join(admin.Get(ctx, client.ObjectKeyFromObject(published), published), admin.Get(ctx, client.ObjectKeyFromObject(secret), secret))
	if err != nil {
		return err
	}
	ring, err := l.keys.Ring(ctx)
	if err != nil {
		return err
	}
	var want []string
	for _, key := range ring.Known() {
		want = append(want, signed.FormatKey(key))
	}
	if found := strings.Fields(published.Data["trusted-keys"]); len(published.Data) != 2 || !slices.Equal(found, want) {
		return fmt.Errorf("the ConfigMap has %d entries and the keys %q, want %q", len(published.Data), found, want)
	}
	authorities := []byte(published.Data["ca.crt"])
	if !bytes.Equal(l.Authorities(), authorities) || !bytes.Equal(secret.Data["ca.crt"], authorities) {
		return errors.New("the authorities differ")
	}
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	host, _, _ := strings.Cut(l.Address(), ":")
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: later{by: &l.ahead}.Now()})
	return err
}

func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: service}}
}

func secretNamed(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: name}}
}

func TestTheLeaderKeepsWhatGatewaysMount(t *testing.T) {
	l := startLeader(t)
	inOrder := func(after string) {
		t.Helper()
		apiserver.Eventually(t, "all is in order after "+after, func() error { return l.inOrder(t.Context()) })
	}
	inOrder("the start")
	if want := service + ".crypto-broker-system.svc:443"; l.Address() != want {
		t.Errorf("the address is %s, want %s", l.Address(), want)
	}
	ca := secretNamed(service + "-ca")
	for _, object := range []client.Object{configMap(), secretNamed(service + "-tls"), ca} {
		if err := admin.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		apiserver.Eventually(t, "it is made again", func() error { return admin.Get(t.Context(), client.ObjectKeyFromObject(object), object) })
		inOrder("an object was deleted")
	}
	for entry, object := range map[string]client.Object{
		"trusted-keys": configMap(), "ca.crt": configMap(), "other": configMap(), "tls.crt": secretNamed(service + "-tls"), "tls.key": secretNamed(service + "-tls"),
	} {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data": {%q: "Z2FyYmFnZQ=="}}`, entry))
		if err := admin.Patch(t.Context(), object, patch); err != nil {
			t.Fatal(err)
		}
		inOrder("somebody changed the entry " + entry)
	}

	// A rotation reaches the ConfigMap, and the previous key stays until no pod needs it.
	before, err := l.keys.Ring(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rotate := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata": {"annotations": {%q: "now"}}}`, signing.RotateAnnotation))
	if err := admin.Patch(t.Context(), secretNamed(signingSecret), rotate); err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, "there is another signing key", func() error {
		if ring, err := l.keys.Ring(t.Context()); err != nil || len(ring.Known()) != 2 || ring.Current().Equal(before.Current()) {
			return fmt.Errorf("found %d keys, error %w", len(ring.Known()), err)
		}
		return nil
	})
	inOrder("a rotation of the signing keys")

	// The certificate is renewed, and so is its authority.
	told, first := l.told.Load(), l.Authorities()
	for _, ahead := range []time.Duration{21 * 24 * time.Hour, 310 * 24 * time.Hour, 312 * 24 * time.Hour} {
		l.ahead.Store(int64(ahead))
		l.KeysChanged() // so that the loop does not wait for its timer
		inOrder(fmt.Sprint(ahead))
	}
	apiserver.Eventually(t, "brokers have to trust another authority, and listeners were told", func() error {
		if bytes.Equal(first, l.Authorities()) || l.told.Load() == told {
			return errors.New("the authorities are the same, or nobody was told")
		}
		return nil
	})
	inOrder("a change of the authority")
}

func TestNoGatewayHasNoAddressAndNoAuthorities(t *testing.T) {
	var none *keygateway.Gateway
	if none.Address() != "" || none.Authorities() != nil {
		t.Errorf("found %q and %q", none.Address(), none.Authorities())
	}
}
