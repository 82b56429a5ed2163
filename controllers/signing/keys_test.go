// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

// replica is one of the operator's, with a clock that the test moves.
type replica struct {
	*Keys
	t       *testing.T
	server  client.WithWatch
	time    *clocktesting.FakeClock
	events  *events.FakeRecorder
	changes int
}

func newReplica(t *testing.T, server client.WithWatch) *replica {
	r := &replica{t: t, server: server, time: clocktesting.NewFakeClock(epoch), events: events.NewFakeRecorder(16)}
	options := Options{
		Namespace: "system", SecretName: "signing", Lifetime: DefaultLifetime, Pods: server,
		Elected: make(chan struct{}), Events: r.events, Clock: r.time,
	}
	if err := options.check(); err != nil {
		t.Fatal(err)
	}
	r.Keys = &Keys{options: options, client: server, log: logr.Discard()}
	r.OnChange(func(context.Context) { r.changes++ })
	return r
}

// pass runs one iteration of the leader's loop.
func (r *replica) pass() Ring {
	r.t.Helper()
	if _, err := r.refresh(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.maintain(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	ring, err := r.Ring(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return ring
}

func (r *replica) secret() *corev1.Secret {
	r.t.Helper()
	secret := &corev1.Secret{}
	if err := r.server.Get(r.t.Context(), r.name(), secret); err != nil {
		r.t.Fatal(err)
	}
	return secret
}

// nextEvent returns the next recorded event.
func (r *replica) nextEvent() string {
	select {
	case text := <-r.events.Events:
		return text
	default:
		return ""
	}
}

func podThatTrusts(ring Ring) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "app"},
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{{
			Name: contract.BrokerContainer, RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Args: []string{contract.Argument(contract.TrustedKeysFlag, "") + signed.FormatKey(ring.Current())},
		}}},
	}
}

func TestAKeyIsReplacedWithAgeAndGoesWithTheLastPodThatTrustsIt(t *testing.T) {
	server := fake.NewClientBuilder().Build()
	r := newReplica(t, server)
	first := r.pass()
	pod := podThatTrusts(first)
	if err := server.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	r.time.Step(DefaultLifetime - time.Second)
	if !r.pass().Equal(first) || r.nextEvent() != "" {
		t.Fatal("the key was replaced before its time")
	}
	r.time.Step(time.Second)
	second := r.pass()
	if second.current.id == first.current.id || len(second.retired) != 1 || second.retired[0].id != first.current.id {
		t.Fatalf("after its time: %s, retired %d", second.current.id, len(second.retired))
	}
	if told := r.nextEvent(); !strings.HasPrefix(told, "Normal SigningKeyRotated The signing key "+second.current.id+" is current. The one before, "+first.current.id) {
		t.Errorf("told %q", told)
	}
	r.time.Step(24 * time.Hour)
	if !r.pass().Equal(second) {
		t.Error("a key went that a pod trusts")
	}
	if err := server.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if third := r.pass(); len(third.retired) != 0 || len(r.secret().Data) != 1 {
		t.Error("a key stayed that no pod trusts")
	}
	if told := r.nextEvent(); told != "Normal SigningKeyRemoved Removed the retired signing keys "+first.current.id+": no running pod depends on them." {
		t.Errorf("told %q", told)
	}
	if r.changes != 3 {
		t.Errorf("%d changes were told, want 3", r.changes)
	}
}

func TestAKeyIsReplacedWhenSomebodyAsks(t *testing.T) {
	r := newReplica(t, fake.NewClientBuilder().Build())
	first := r.pass()
	secret := r.secret()
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, RotateAnnotation, "")
	if err := r.server.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	second := r.pass()
	if second.Equal(first) {
		t.Error("the key is the same")
	}
	if !r.pass().Equal(second) {
		t.Error("what was asked once was done twice")
	}
}

func TestKeysThatNobodyTrustsDoNotKeepAnotherFromBeingMade(t *testing.T) {
	for sentence, due := range map[string]func(*replica){
		"the current key is too old": func(r *replica) { r.time.Step(DefaultLifetime) },
		"somebody asks": func(r *replica) {
			r.time.Step(2 * keepRetired)
			secret := r.secret()
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, RotateAnnotation, "")
			if err := r.server.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := fake.NewClientBuilder().Build()
			r := newReplica(t, server)
			ring, pods := r.pass(), []*corev1.Pod(nil)
			for len(ring.retired) < signed.MaxSignatures-1 {
				pod := podThatTrusts(ring)
				pod.Name = ring.current.id
				if err := server.Create(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
				pods = append(pods, pod)
				r.time.Step(DefaultLifetime)
				ring = r.pass()
				r.nextEvent()
			}
			due(r)
			for range 2 {
				if _, err := r.maintain(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "there are 16 signing keys") {
					t.Fatalf("found %v while pods trust every key", err)
				}
			}
			if told := r.nextEvent(); !strings.HasPrefix(told, "Warning SigningKeysUnusable there are 16 signing keys") || r.nextEvent() != "" {
				t.Errorf("told %q, want once that there are too many", told)
			}
			for _, pod := range pods {
				if err := server.Delete(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
			next := r.pass()
			if len(next.retired) != 1 || next.retired[0].id != ring.current.id || len(r.secret().Data) != 2 {
				t.Fatalf("found %d retired keys and %d in the Secret, want the one before and the current one", len(next.retired), len(r.secret().Data))
			}
			if _, asked := r.secret().Annotations[RotateAnnotation]; asked {
				t.Error("the Secret still asks for a new key")
			}
			if told := r.nextEvent(); !strings.HasPrefix(told, "Normal SigningKeyRotated The signing key "+next.current.id) {
				t.Errorf("told %q", told)
			}
			told := r.nextEvent()
			if !strings.HasPrefix(told, "Normal SigningKeyRemoved Removed the retired signing keys ") || !strings.HasSuffix(told, ": no running pod depends on them.") {
				t.Errorf("told %q", told)
			}
			for _, k := range ring.retired {
				if !strings.Contains(told, k.id) {
					t.Errorf("told %q, want the key %s in it", told, k.id)
				}
			}
		})
	}
}

func TestWhatIsDeletedIsReplacedAndTold(t *testing.T) {
	for sentence, test := range map[string]struct {
		remove func(r *replica) error
		why    string
	}{
		"the Secret": {func(r *replica) error { return r.server.Delete(t.Context(), r.secret()) }, "the Secret was deleted"},
		"the current key": {func(r *replica) error {
			secret := r.secret()
			delete(secret.Data, currentEntry)
			return r.server.Update(t.Context(), secret)
		}, "entry current.pem was deleted"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newReplica(t, fake.NewClientBuilder().Build())
			first := r.pass()
			if err := test.remove(r); err != nil {
				t.Fatal(err)
			}
			second := r.pass()
			if second.current.id == first.current.id || len(second.retired) != 0 {
				t.Error("the key is the same, or goes on")
			}
			want := "Warning SigningKeyReplaced The signing key " + second.current.id + " was made, because " + test.why +
				". Brokers that trust neither it nor a retired key refuse new sets until their workloads are restarted."
			if told := r.nextEvent(); told != want {
				t.Errorf("told %q\nwant %q", told, want)
			}
		})
	}
}

func TestReplicasThatStartTogetherHaveOneKey(t *testing.T) {
	server := fake.NewClientBuilder().Build()
	first := newReplica(t, server).pass()
	// The second operator did not find a Secret a moment ago.
	absent := true
	late := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if absent {
				absent = false
				return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	if second := newReplica(t, late).pass(); !second.Equal(first) {
		t.Error("the second has another key")
	}
}

func TestKnownKeysStayWhileTheAPIServerIsAwayAndNoLonger(t *testing.T) {
	server := fake.NewClientBuilder().Build()
	away := false
	r := newReplica(t, interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if away {
				return errors.New("no route to host")
			}
			return c.Get(ctx, key, object, options...)
		},
	}))
	away = true
	if _, err := r.Ring(t.Context()); err == nil || err.Error() != "read the signing keys in the Secret system/signing: no route to host" {
		t.Errorf("got %v", err)
	}
	away = false
	first := r.pass()
	away = true
	if _, err := r.refresh(t.Context()); err == nil {
		t.Error("nothing was wrong")
	}
	if ring, err := r.Ring(t.Context()); err != nil || !ring.Equal(first) {
		t.Errorf("the known key is gone: %v", err)
	}
	away = false
	secret := r.secret()
	secret.Data[currentEntry] = []byte("-")
	if err := server.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	const want = "the signing keys in the Secret system/signing cannot be read: entry current.pem has no PEM block, expected one PEM block PRIVATE KEY with an Ed25519 key in PKCS #8; correct it, or delete the Secret and restart all workloads with a broker"
	for range 2 {
		if _, err := r.refresh(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
	}
	if _, err := r.Ring(t.Context()); err == nil {
		t.Error("a key that cannot be read is used")
	}
	if told := r.nextEvent(); told != "Warning SigningKeysUnusable "+want || r.nextEvent() != "" {
		t.Errorf("told %q, want it once", told)
	}
}

func TestOptionsThatCannotWorkAreNamed(t *testing.T) {
	good := Options{Namespace: "n", SecretName: "s", Lifetime: time.Hour, Pods: fake.NewClientBuilder().Build(), Elected: make(chan struct{})}
	for sentence, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no name":        {func(o *Options) { o.SecretName = "" }, `signing: found the Secret "" in namespace "n", expected two names that are not empty`},
		"a short life":   {func(o *Options) { o.Lifetime = time.Minute }, "signing: found a lifetime of keys of 1m0s, expected at least 1h0m0s"},
		"nobody to tell": {func(o *Options) { o.Elected = nil }, "signing: found no reader of pods or no sign of the election, expected both"},
	} {
		t.Run(sentence, func(t *testing.T) {
			options := good
			test.change(&options)
			if _, err := New(nil, options); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
