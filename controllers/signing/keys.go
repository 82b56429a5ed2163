// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/controllers/objectwatch"
)

// liveTimeout bounds a read of the Secret for which a caller waits.
const liveTimeout = 2 * time.Second

// lookInterval is the time between reads of the Secret when nothing changes.
const lookInterval = 5 * time.Minute

// Options are the settings of Keys.
type Options struct {
	// Namespace and SecretName name the Secret, both required.
	Namespace, SecretName string
	// Lifetime is how long a key is current, at least an hour.
	Lifetime time.Duration
	// Pods lists pods from a cache, to find brokers that depend on a retired key.
	Pods client.Reader
	// Elected is closed once this replica is the leader. Only the leader rotates keys.
	Elected <-chan struct{}
	// Events receives events about keys, on the Secret. It may be nil.
	Events events.EventRecorder
	// Audit receives a record of each key that is made or removed. It may be nil.
	Audit *audit.Log
	// Clock is the real clock if it is absent. Tests set another one.
	Clock clock.Clock
}

func (o *Options) check() error {
	switch {
	case o.Namespace == "" || o.SecretName == "":
		return fmt.Errorf("signing: found the Secret %q in namespace %q, expected two names that are not empty", o.SecretName, o.Namespace)
	case o.Lifetime < LeastLifetime:
		return fmt.Errorf("signing: found a lifetime of keys of %s, expected at least %s", o.Lifetime, LeastLifetime)
	case o.Pods == nil || o.Elected == nil:
		return errors.New("signing: found no reader of pods or no sign of the election, expected both")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return nil
}

// Keys provides the signing keys. It follows the Secret while Start runs.
type Keys struct {
	options Options
	client  client.Client
	watch   *objectwatch.Watcher
	log     logr.Logger
	flights singleflight.Group
	ring    atomic.Pointer[Ring]

	mu       sync.Mutex
	onChange []func(context.Context)
	// reported is the problem that the last event has reported.
	reported string
}

var (
	_ manager.Runnable               = &Keys{}
	_ manager.LeaderElectionRunnable = &Keys{}
)

// New checks the options and prepares the clients. It does not call the API server.
func New(cfg *rest.Config, options Options) (*Keys, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	direct, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("signing: prepare a client: %w", err)
	}
	watch, err := objectwatch.New(cfg, scheme, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: options.Namespace, Name: options.SecretName}})
	if err != nil {
		return nil, fmt.Errorf("signing: prepare the watch: %w", err)
	}
	return &Keys{options: options, client: direct, watch: watch, log: log.Log.WithName("signing")}, nil
}

// OnChange makes f be called after each change of the keys. It must be called before Start.
func (k *Keys) OnChange(f func(context.Context)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.onChange = append(k.onChange, f)
}

// Ring returns the known keys. If no keys are known, it reads the Secret from the API server, and
// creates the Secret with a first key if it does not exist.
func (k *Keys) Ring(ctx context.Context) (Ring, error) {
	if r := k.ring.Load(); r != nil {
		return *r, nil
	}
	flight := k.flights.DoChan("", func() (any, error) {
		// Other callers may still wait for the same read after the first caller has given up.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), liveTimeout)
		defer cancel()
		return k.refresh(ctx)
	})
	select {
	case <-ctx.Done():
		return Ring{}, fmt.Errorf("read the signing keys: %w", ctx.Err())
	case result := <-flight:
		r, _ := result.Val.(Ring)
		return r, result.Err
	}
}

// NeedLeaderElection returns false, because every replica injects pods that trust a key.
func (k *Keys) NeedLeaderElection() bool { return false }

// Start follows the Secret until ctx ends. It rotates the keys while this replica is the leader.
func (k *Keys) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, err := k.watch.Start(ctx)
	if err != nil {
		return fmt.Errorf("signing: start the watch: %w", err)
	}
	k.loop(ctx, changes)
	return k.watch.Wait()
}

func (k *Keys) loop(ctx context.Context, changes <-chan struct{}) {
	retry := objectwatch.NewBackoff()
	elected, leading := k.options.Elected, false
	for ctx.Err() == nil {
		r, err := k.refresh(ctx)
		pause := lookInterval
		if err == nil {
			registerRing(r)
		}
		if err == nil && leading {
			pause, err = k.maintain(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			retry = objectwatch.NewBackoff()
		case objectwatch.IsRace(err):
			pause = retry.Step() // somebody else was faster; what they wrote is read now
		default:
			pause = retry.Step()
			k.log.Error(err, "the signing keys are not in order", "retryIn", pause.String())
		}
		timer := k.options.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-changes:
		case <-elected:
			elected, leading = nil, true
		case <-timer.C():
		}
		timer.Stop()
	}
}

func (k *Keys) name() client.ObjectKey {
	return client.ObjectKey{Namespace: k.options.Namespace, Name: k.options.SecretName}
}

// refresh reads the Secret from the API server, makes missing keys, and stores the keys of the
// Secret as the known keys. If the Secret cannot be parsed, no keys are known. While the API
// server cannot be reached, the known keys stay.
func (k *Keys) refresh(ctx context.Context) (Ring, error) {
	var secret corev1.Secret
	err := k.client.Get(ctx, k.name(), &secret)
	if apierrors.IsNotFound(err) {
		return k.create(ctx, k.ring.Swap(nil) != nil)
	}
	if err != nil {
		return Ring{}, fmt.Errorf("read the signing keys in the Secret %s: %w", k.name(), err)
	}
	found, err := readSecret(&secret)
	if errors.Is(err, errNoCurrent) {
		next, err := found.rotate(k.options.Clock.Now())
		if err != nil {
			return Ring{}, err
		}
		if err := k.update(ctx, &secret, next); err != nil {
			return Ring{}, err
		}
		rotations.Inc()
		k.replaced(&secret, next, "entry "+currentEntry+" was deleted")
		found = next
	} else if err != nil {
		k.ring.Store(nil)
		err = fmt.Errorf("the signing keys in the Secret %s cannot be read: %w; correct it, or delete the Secret and restart all workloads with a broker", k.name(), err)
		k.reportOnce(&secret, err.Error())
		return Ring{}, err
	}
	k.take(ctx, found)
	return found, nil
}

// create creates the Secret with its first key. again reports whether there was a Secret before.
// Another replica may be faster.
func (k *Keys) create(ctx context.Context, again bool) (Ring, error) {
	first, err := Ring{}.rotate(k.options.Clock.Now())
	if err != nil {
		return Ring{}, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.options.Namespace, Name: k.options.SecretName,
			Labels: map[string]string{"app.kubernetes.io/part-of": "crypto-broker", "app.kubernetes.io/managed-by": v1alpha1.FieldManager},
		},
		Type: corev1.SecretTypeOpaque,
	}
	if err := first.writeSecret(secret); err != nil {
		return Ring{}, err
	}
	err = k.client.Create(ctx, secret, client.FieldOwner(v1alpha1.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		err = k.client.Get(ctx, k.name(), secret)
		if err == nil {
			first, err = readSecret(secret)
		}
	} else if err == nil {
		k.log.Info("made a Secret with a signing key", "key", first.current.id, "again", again)
		if !again {
			k.options.Audit.AddEvent(keyEvent("made", first.current.id))
		} else {
			rotations.Inc()
			k.replaced(secret, first, "the Secret was deleted")
		}
	}
	if err != nil {
		return Ring{}, fmt.Errorf("make the Secret %s with the signing keys: %w", k.name(), err)
	}
	k.take(ctx, first)
	return first, nil
}

// update writes keys into the Secret that was read.
func (k *Keys) update(ctx context.Context, secret *corev1.Secret, r Ring) error {
	if err := r.writeSecret(secret); err != nil {
		return err
	}
	delete(secret.Annotations, RotateAnnotation)
	if err := k.client.Update(ctx, secret, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return fmt.Errorf("write the signing keys into the Secret %s: %w", k.name(), err)
	}
	return nil
}

// take stores the known keys, and calls the functions of OnChange if they have changed.
func (k *Keys) take(ctx context.Context, r Ring) {
	before := k.ring.Swap(&r)
	if before != nil && before.Equal(r) {
		return
	}
	k.mu.Lock()
	k.reported = ""
	listeners := k.onChange
	k.mu.Unlock()
	for _, f := range listeners {
		f(ctx)
	}
}
