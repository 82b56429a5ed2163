// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// watchStub reports a change when a test asks for it.
type watchStub chan struct{}

func (w watchStub) Start(context.Context) (<-chan struct{}, error) { return w, nil }
func (w watchStub) Wait() error                                    { return nil }

func TestStartActsOnChangesAndEndsWithItsContext(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := newTestCluster(webhookConfigurations()...)
	changes := make(watchStub)
	options := testOptions()
	options.Clock = w.clock
	replica := newCertificates(w.client, changes, options)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- replica.Start(ctx) }()

	eventually(t, "the replica is ready", func() bool { return replica.Ready(nil) == nil })
	empty(t, w)
	changes <- struct{}{}
	eventually(t, "the bundles are filled again", func() bool {
		for _, bundle := range w.bundles(t) {
			if w.accepts(replica, bundle) != nil {
				return false
			}
		}
		return true
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Start returned %v after its context ended, expected nothing", err)
	}
}

func TestStartTriesAgainAfterAFailure(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := newTestCluster() // no configurations
	options := testOptions()
	options.Clock = w.clock
	replica := newCertificates(w.client, make(watchStub), options)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- replica.Start(ctx) }()

	eventually(t, "the replica waits", w.clock.HasWaiters)
	for _, object := range webhookConfigurations() {
		if err := w.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	w.clock.Step(longestWait)
	eventually(t, "the replica is ready", func() bool { return replica.Ready(nil) == nil })
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Start returned %v after its context ended, expected nothing", err)
	}
}

func TestNewNamesEveryOptionThatIsMissingOrWrong(t *testing.T) {
	_, err := New(&rest.Config{}, Options{Namespace: "crypto-broker-system", FurtherNames: []string{"localhost", "127.0.0.1", "a b"}})
	if err == nil {
		t.Fatal("found no error")
	}
	for _, want := range []string{
		"SecretName is empty", "ServiceName is empty", "ValidatingConfiguration is empty",
		`FurtherNames[2] is "a b", expected a DNS name or an IP address`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error %q does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "FurtherNames[0]") || strings.Contains(err.Error(), "FurtherNames[1]") {
		t.Errorf("the error %q complains of names that are fine", err)
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("within 30 s it did not happen that %s", what)
	}
}
