// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crypto-broker/crypto-broker-operator/controllers/objectwatch"
)

// moments are the states in which a pass has something to write. A single replica reaches each of them.
var moments = map[string]func(*testing.T, *testCluster, *Certificates){
	"nothing is there yet": func(*testing.T, *testCluster, *Certificates) {},
	"a successor is due": func(t *testing.T, w *testCluster, replica *Certificates) {
		pass(t, replica)
		w.clock.Step(authorityLifetime - prepareBefore)
	},
	"a successor may take over": func(t *testing.T, w *testCluster, replica *Certificates) {
		pass(t, replica)
		w.clock.Step(authorityLifetime - prepareBefore)
		pass(t, replica)
		w.clock.Step(settle)
	},
	"a retired authority may go": func(t *testing.T, w *testCluster, replica *Certificates) {
		pass(t, replica)
		w.clock.Step(authorityLifetime - prepareBefore)
		pass(t, replica)
		w.clock.Step(settle)
		pass(t, replica)
		w.clock.Step(webhookServing.retireAfter())
	},
	"the Secret is gone": func(t *testing.T, w *testCluster, replica *Certificates) {
		pass(t, replica)
		if err := w.client.Delete(t.Context(), w.secret(t)); err != nil {
			t.Fatal(err)
		}
	},
}

// The test interrupts one replica before each of its calls in turn, and the other one makes complete passes at that moment. No
// replica may ever serve a certificate that the bundles do not trust, and in the end both agree.
func TestReplicasThatActAtTheSameTime(t *testing.T) {
	for moment, reach := range moments {
		for call := 1; call <= 12; call++ {
			t.Run(fmt.Sprintf("%s, interrupted before call %d", moment, call), func(t *testing.T) {
				w := newTestCluster(webhookConfigurations()...)
				other := w.replica(w.client)
				var interruption interruption
				slow := w.replica(interruption.of(w.client))
				reach(t, w, slow)
				if moment != "nothing is there yet" && moment != "the Secret is gone" {
					pass(t, other)
				}
				interruption.before(call, func() {
					pass(t, other)
					pass(t, other)
				})
				w.agree(t, slow, other)
			})
		}
	}
}

// A replica that has read everything sleeps, and the Secret is lost and made
// again before it writes. What it writes then must not undo that.
func TestAReplicaThatSleptOverTheLossOfTheSecretDoesNoHarm(t *testing.T) {
	for call := 1; call <= 8; call++ {
		t.Run(fmt.Sprintf("before call %d", call), func(t *testing.T) {
			w := newTestCluster(webhookConfigurations()...)
			other := w.replica(w.client)
			var interruption interruption
			slow := w.replica(interruption.of(w.client))
			pass(t, other)
			pass(t, slow)
			empty(t, w) // so that there is something to write
			interruption.before(call, func() {
				if err := w.client.Delete(t.Context(), w.secret(t)); err != nil {
					t.Fatal(err)
				}
				pass(t, other)
				pass(t, other)
			})
			w.agree(t, slow, other)
		})
	}
}

// interruption runs a function before a certain call of a client.
type interruption struct {
	calls, at int
	do        func()
}

// before counts calls from now on.
func (i *interruption) before(call int, do func()) { i.calls, i.at, i.do = 0, call, do }

func (i *interruption) count() {
	i.calls++
	if i.calls == i.at && i.do != nil {
		i.do()
	}
}

func (i *interruption) of(direct client.WithWatch) client.Client {
	return interceptor.NewClient(direct, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			i.count()
			return c.Get(ctx, key, object, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			i.count()
			return c.Create(ctx, object, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			i.count()
			return c.Update(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			i.count()
			return c.Patch(ctx, object, patch, options...)
		},
	})
}

// agree makes passes of the slow replica and then of the other. After each,
// what either serves has to be in all bundles, and in the end both have to
// serve certificates of the same authority.
func (w *testCluster) agree(t *testing.T, slow, other *Certificates) {
	t.Helper()
	check := func(when string) {
		t.Helper()
		bundles := w.views(t)
		for i, replica := range []*Certificates{slow, other} {
			for bundle, webhook := range bundles {
				if err := w.accepts(replica, []byte(bundle)); err != nil && !errors.Is(err, errServesNothing) {
					t.Fatalf("%s: %s refuses replica %d: %v", when, webhook, i, err)
				}
			}
		}
	}
	for range 5 {
		_, err := slow.synchronise(t.Context())
		check("after a pass of the slow replica")
		if err != nil && !objectwatch.IsRace(err) {
			t.Fatal(err)
		}
	}
	pass(t, other)
	check("after the last pass of the other")
	for i, replica := range []*Certificates{slow, other} {
		if err := replica.Ready(nil); err != nil {
			t.Errorf("replica %d is not ready in the end: %v", i, err)
		}
	}
	if !slow.leafAuthority.Equal(other.leafAuthority) {
		t.Error("the replicas serve certificates of different authorities in the end")
	}
}

func TestASuccessorDoesNotSignUntilEveryWebhookTrustsIt(t *testing.T) {
	w := newTestCluster(webhookConfigurations()...)
	replica := w.replica(w.client)
	pass(t, replica)
	first := w.authorities(t).current.certificate

	// Patches of one configuration are refused from now on.
	refused := w.replica(interceptor.NewClient(w.client, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if _, ok := object.(*admissionregistrationv1.ValidatingWebhookConfiguration); ok {
				return errors.New("refused")
			}
			return c.Patch(ctx, object, patch, options...)
		},
	}))
	w.clock.Step(authorityLifetime - prepareBefore)
	for range 20 {
		if _, err := refused.synchronise(t.Context()); err == nil {
			t.Fatal("a refused write was not told")
		}
		if !w.authorities(t).current.certificate.Equal(first) {
			t.Fatal("the successor signs although one configuration does not hold it")
		}
		if err := refused.Ready(nil); err != nil {
			t.Fatalf("not ready although what is served is trusted: %v", err)
		}
		w.clock.Step(12 * time.Hour)
	}

	pass(t, replica)
	w.clock.Step(time.Minute)
	pass(t, replica)
	if w.authorities(t).current.certificate.Equal(first) {
		t.Fatal("the successor does not sign although both configurations hold it")
	}
}

func TestTheKeyOfARetiredAuthorityIsDeleted(t *testing.T) {
	w := newTestCluster(webhookConfigurations()...)
	replica := w.replica(w.client)
	pass(t, replica)
	key := w.secret(t).Data[currentKeyEntry]
	w.clock.Step(authorityLifetime - prepareBefore)
	pass(t, replica)
	w.clock.Step(settle)
	pass(t, replica)

	secret := w.secret(t)
	if len(secret.Data[retiredEntry]) == 0 {
		t.Fatal("found no retired authority after a rotation")
	}
	for entry, data := range secret.Data {
		if bytes.Contains(data, key) {
			t.Errorf("entry %s holds the key of the retired authority", entry)
		}
	}
}

func TestAnOperatorThatWasDownForTooLongBeginsAnew(t *testing.T) {
	w := newTestCluster(webhookConfigurations()...)
	pass(t, w.replica(w.client))
	w.clock.Step(authorityLifetime + time.Hour)

	replica := w.replica(w.client)
	pass(t, replica)
	for webhook, bundle := range w.bundles(t) {
		if err := w.handshake(t.Context(), replica, bundle); err != nil {
			t.Errorf("%s can't call the replica: %v", webhook, err)
		}
		if count := len(parseBundle(bundle)); count != 1 {
			t.Errorf("%s holds %d authorities, expected only the new one", webhook, count)
		}
	}
}

// A certificate that lives as long as its authority is not renewed over and
// over in its last hours.
func TestACertificateNeverOutlivesItsAuthority(t *testing.T) {
	w := newTestCluster(webhookConfigurations()...)
	signed := 0
	var last *corev1.Secret
	replica := w.replica(interceptor.NewClient(w.client, interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return errors.New("the Secret is immutable")
		},
	}))
	pass(t, replica)
	last = w.secret(t)
	w.clock.Step(authorityLifetime - webhookServing.leafLifetime/2)
	leaf := replica.current()
	for range 11 {
		if _, err := replica.synchronise(t.Context()); err == nil {
			t.Fatal("a refused write was not told")
		}
		if found := replica.current(); found != leaf {
			leaf, signed = found, signed+1
		}
		w.clock.Step(time.Hour)
	}
	if signed != 1 {
		t.Errorf("signed %d times in the last half day, expected once", signed)
	}
	if authority := w.authorities(t).current.certificate; leaf.Leaf.NotAfter.After(authority.NotAfter) {
		t.Errorf("the certificate expires at %s, its authority at %s", leaf.Leaf.NotAfter, authority.NotAfter)
	}
	if last.ResourceVersion != w.secret(t).ResourceVersion {
		t.Error("the Secret changed although it can't be written")
	}
}

// A machine may begin with a clock that is ahead, and set it later.
func TestACertificateThatIsNotValidYetIsReplaced(t *testing.T) {
	w := newTestCluster(webhookConfigurations()...)
	pass(t, w.replica(w.client))
	right := w.clock.Now()
	w.clock.Step(3 * 24 * time.Hour)
	replica := w.replica(w.client)
	pass(t, replica)

	w.clock.SetTime(right)
	pass(t, replica)
	for webhook, bundle := range w.bundles(t) {
		if err := w.accepts(replica, bundle); err != nil {
			t.Errorf("%s can't call the replica: %v", webhook, err)
		}
	}
}

// An authority lives for a year, so nobody waits until it is valid.
func TestAnAuthorityThatIsNotValidYetIsReplaced(t *testing.T) {
	w := newTestCluster(webhookConfigurations()...)
	right := w.clock.Now()
	w.clock.Step(3 * 24 * time.Hour)
	replica, other := w.replica(w.client), w.replica(w.client)
	pass(t, replica)
	pass(t, other)

	w.clock.SetTime(right)
	for range 2 {
		pass(t, replica)
		pass(t, other)
	}
	for webhook, bundle := range w.bundles(t) {
		for _, each := range []*Certificates{replica, other} {
			if err := w.accepts(each, bundle); err != nil {
				t.Errorf("%s can't call a replica: %v", webhook, err)
			}
		}
	}
	if state := w.authorities(t); len(state.retired) != 1 || state.next != nil {
		t.Errorf("%d authorities are retired and a successor is %v, expected the one that was not valid and no successor", len(state.retired), state.next)
	}
}

func TestASuccessorThatIsNotValidYetIsMadeAgain(t *testing.T) {
	w := newTestCluster(webhookConfigurations()...)
	replica := w.replica(w.client)
	pass(t, replica)
	w.clock.Step(authorityLifetime - prepareBefore)
	right := w.clock.Now()
	w.clock.Step(3 * 24 * time.Hour)
	pass(t, replica)

	w.clock.SetTime(right)
	pass(t, replica)
	if next := w.authorities(t).next; next == nil || !valid(next.certificate, right) {
		t.Errorf("found the successor %v, expected one that is valid", next)
	}
}
