// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crypto-broker/crypto-broker-operator/controllers/objectwatch"
)

const serverName = "webhook.crypto-broker-system.svc"

// testCluster is an API server with two webhook configurations, a clock, and the
// replicas of an operator.
type testCluster struct {
	client client.WithWatch
	clock  *clocktesting.FakeClock
}

func newTestCluster(objects ...client.Object) *testCluster {
	return &testCluster{
		client: fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(objects...).Build(),
		clock:  clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
}

func testOptions() Options {
	return Options{
		Namespace:               "crypto-broker-system",
		SecretName:              "authority",
		ServiceName:             "webhook",
		MutatingConfiguration:   "configuration",
		ValidatingConfiguration: "configuration",
	}
}

func webhookConfigurations() []client.Object {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "configuration"}}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "configuration"}}
	for _, name := range []string{"first.cryptobroker.io", "second.cryptobroker.io"} {
		mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{Name: name})
		validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: name})
	}
	return []client.Object{mutating, validating}
}

// replica is an operator that talks to the API server through the client.
func (w *testCluster) replica(direct client.Client) *Certificates {
	options := testOptions()
	options.Clock = w.clock
	return newCertificates(direct, nil, options)
}

// pass runs the loop of a replica until nothing fails because of an outdated version.
func pass(t *testing.T, replica *Certificates) {
	t.Helper()
	for range 10 {
		_, err := replica.synchronise(t.Context())
		if err == nil {
			return
		}
		if !objectwatch.IsRace(err) {
			t.Fatal(err)
		}
	}
	t.Fatal("ten passes in a row were late")
}

// bundles returns the caBundle of each webhook, by a name that is used in messages.
func (w *testCluster) bundles(t *testing.T) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for _, configuration := range []*configuration{mutating("configuration"), validating("configuration")} {
		if err := configuration.read(t.Context(), w.client); err != nil {
			t.Fatal(err)
		}
		if configuration.absent {
			continue
		}
		for i, bundle := range configuration.bundles() {
			found[fmt.Sprintf("%s, webhook %d", configuration.kind, i)] = *bundle
		}
	}
	return found
}

// views returns the bundles that differ from each other, each with the name of a webhook
// that has it.
func (w *testCluster) views(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for webhook, bundle := range w.bundles(t) {
		found[string(bundle)] = webhook
	}
	return found
}

func (w *testCluster) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "crypto-broker-system", Name: "authority"}, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// authorities returns the content of the Secret, and fails the test if it is damaged.
func (w *testCluster) authorities(t *testing.T) *authorities {
	t.Helper()
	state, err := readSecret(w.secret(t), webhookServing)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// accepts reports whether an API server with this bundle accepts what the replica
// serves. For a replica that serves nothing it returns a separate error, because such a replica is not ready and never called.
func (w *testCluster) accepts(replica *Certificates, bundle []byte) error {
	certificate, err := replica.GetCertificate(nil)
	if err != nil {
		return errors.Join(errServesNothing, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = certificate.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: serverName, CurrentTime: w.clock.Now()})
	return err
}

var errServesNothing = errors.New("serves nothing")

// handshake makes a real TLS connection to the replica, as the API server does.
func (w *testCluster) handshake(ctx context.Context, replica *Certificates, bundle []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	here, there := net.Pipe()
	serving := &tls.Config{Time: w.clock.Now}
	replica.TLSOption(serving)
	served := make(chan error, 1)
	go func() { served <- tls.Server(there, serving).HandshakeContext(ctx) }()

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	calling := tls.Client(here, &tls.Config{RootCAs: roots, ServerName: serverName, Time: w.clock.Now})
	err := calling.HandshakeContext(ctx)
	if err == nil {
		err = <-served
	}
	// After a refusal the server may still wait for more data; this ends the wait.
	return errors.Join(err, here.Close(), there.Close())
}
