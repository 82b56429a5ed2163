// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// writePause is the least time between two writes of one namespace's set. The
// first of many changes is written at once, the others together: each write
// wakes the kubelet of each pod.
const writePause = 200 * time.Millisecond

// failureGrace is for how long a set may fail to be written before its profiles
// are no longer called accepted.
const failureGrace = 3 * time.Second

// namespaceReconciler renders and writes the set of a namespace. Requests name
// a namespace.
type namespaceReconciler struct {
	client            client.Client
	configMaps        *configMaps
	renderings        *renderings
	guard             *guard
	baselines         *baselines
	definitions       *definitions
	sealer            *sealer
	operatorNamespace string
	distributor       *distribute.Distributor
	board             *board
	// restored is an error once this process must write nothing more, since what it
	// remembers is of another past than the cluster's.
	restored func() error
	// weakened is told of changes that are weaker and were allowed, once they are
	// written.
	weakened func(ctx context.Context, namespace string, changes []downgrade.Change)
	// again has a namespace reconciled.
	again func(namespace string)
	// changed is called when the board has a new outcome.
	changed func(namespace string)

	mu sync.Mutex
	// targets are the sets that this process wrote or found, by namespace.
	targets map[string]distribute.Target
	// failed is since when the set of a namespace can't be written.
	failed map[string]time.Time
	// named are the profiles of the sets in place, by namespace.
	named map[string]named
}

func (r *namespaceReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	name := request.Name
	if name == everyNamespace {
		return reconcile.Result{}, r.signAll(ctx)
	}
	var namespace corev1.Namespace
	err := r.client.Get(ctx, types.NamespacedName{Name: name}, &namespace)
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		return reconcile.Result{}, err
	}
	if gone || !namespace.DeletionTimestamp.IsZero() {
		r.forget(name)
		return reconcile.Result{}, nil
	}
	if excluded(name, r.operatorNamespace) {
		r.board.set(name, outcome{excluded: true})
		r.changed(name)
		return reconcile.Result{}, nil
	}

	var namespaced v1alpha1.CryptoProfileList
	if err := r.client.List(ctx, &namespaced, client.InNamespace(name)); err != nil {
		return reconcile.Result{}, err
	}
	var cluster v1alpha1.ClusterCryptoProfileList
	if err := r.client.List(ctx, &cluster); err != nil {
		return reconcile.Result{}, err
	}
	rendered := r.renderings.effective(namespaced.Items, cluster.Items, &namespace)
	set, target, pause, err := r.decide(ctx, &namespace, rendered, namespaced.Items, cluster.Items)
	if pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	if r.failing(name, err, time.Now()) < failureGrace && err != nil {
		return reconcile.Result{}, err // tried again before anybody is told
	}
	decided := outcome{
		namespaced: set.Namespaced,
		cluster:    set.Cluster,
		digest:     target.Digest,
		emptied:    len(set.Names) == 0 && target.Digest != "" && set.Refusal == "",
		written:    target.Written,
		withheld:   set.withheld,
		held:       set.held,
	}
	if err != nil {
		decided.failure = fmt.Sprintf("The namespace's set could not be written, and brokers keep what they have: %s.", err)
	}
	r.aim(name, target)
	r.board.set(name, decided)
	r.changed(name)
	return reconcile.Result{}, err
}

// everyNamespace in the place of a name asks for all namespaces with a ConfigMap.
const everyNamespace = ""

// signAll has every set signed anew after the keys changed.
func (r *namespaceReconciler) signAll(ctx context.Context) error {
	var sets corev1.ConfigMapList
	if err := r.client.List(ctx, &sets); err != nil {
		return err
	}
	for i := range sets.Items {
		r.again(sets.Items[i].Namespace)
	}
	return nil
}

// decide has the guard look at what was rendered, keeps profiles whose definition
// went, and settles the result.
func (r *namespaceReconciler) decide(ctx context.Context, namespace *corev1.Namespace, rendered render.Result, namespaced []v1alpha1.CryptoProfile, cluster []v1alpha1.ClusterCryptoProfile) (set guarded, target distribute.Target, pause time.Duration, err error) {
	found, err := r.configMaps.read(ctx, namespace.Name)
	if err != nil {
		return guarded{Result: rendered}, r.target(namespace.Name), 0, err
	}
	if set, err = r.guard.judge(ctx, namespace, found, rendered, namespaced, cluster); err != nil {
		return set, r.inPlace(ctx, namespace, found), 0, err
	}
	r.baselines.show(namespace.Name, set.frozen)
	set.annotations = noting(set.annotations, oldestOf(namespaced, cluster, namespace))
	if set, err = r.holding(ctx, namespace, found, rendered, set); err != nil {
		return set, r.inPlace(ctx, namespace, found), 0, err
	}
	target, pause, err = r.settle(ctx, namespace, found, set)
	return set, target, pause, err
}

// settle makes the namespace's ConfigMap what it should be, and returns the set
// that brokers are to serve after that: where nothing can be written, the one
// that is there. A pause says that it is too early to write again.
func (r *namespaceReconciler) settle(ctx context.Context, namespace *corev1.Namespace, found *corev1.ConfigMap, set guarded) (target distribute.Target, pause time.Duration, err error) {
	name := namespace.Name
	if set.Refusal != "" {
		return r.inPlace(ctx, namespace, found), 0, nil
	}
	data := set.Data
	if len(set.Names) == 0 && !set.frozen {
		all, started, err := distribute.Brokers(ctx, r.client, name)
		if err != nil {
			return r.inPlace(ctx, namespace, found), 0, err
		}
		if inPlace := r.inPlace(ctx, namespace, found).Digest != ""; !inPlace && started == 0 || inPlace && all == 0 {
			data = nil // nobody has to be told that there is nothing to serve
		}
		if data == nil && set.state.IsEmpty() {
			if found != nil {
				if err := r.configMaps.remove(ctx, found); err != nil {
					return r.inPlace(ctx, namespace, found), 0, err
				}
				log.FromContext(ctx).Info("deleted the ConfigMap of a namespace without profiles, without brokers and with nothing to remember")
			}
			r.guard.wrote(namespace, set.state)
			return distribute.Target{}, 0, nil
		}
	}
	seal, err := r.sealer.seal(ctx, namespace, found, data, set.annotations)
	if err != nil {
		return r.inPlace(ctx, namespace, found), 0, err
	}
	set.annotations = maps.Clone(set.annotations)
	set.annotations[v1alpha1.MemorySignatureAnnotation] = string(seal.memory)
	if isAsDesired(found, data, seal.signature, set.annotations) {
		r.wrote(namespace, set, seal)
		return r.targetOf(name, seal.Statement), 0, nil
	}
	if pause := writePause - time.Since(r.target(name).Written); pause > 0 {
		return distribute.Target{}, pause, nil
	}
	if err := r.restored(); err != nil {
		return r.inPlace(ctx, namespace, found), 0, err
	}
	if err := r.configMaps.write(ctx, name, found, data, seal.signature, set.annotations); err != nil {
		return r.inPlace(ctx, namespace, found), 0, err
	}
	r.wrote(namespace, set, seal)
	r.guard.weakened.Add(float64(len(set.allowed)))
	r.weakened(ctx, name, set.allowed)
	if data == nil {
		log.FromContext(ctx).Info("took the set out of the ConfigMap of a namespace; what is known of it is remembered", "profilesWithheld", len(set.withheld))
		return distribute.Target{}, 0, nil
	}
	r.name(name, named{set.Digest, set.Names})
	if !seal.fresh && found != nil && found.Data[profile.FileName] == string(data) {
		log.FromContext(ctx).Info("wrote what is beside the set of a namespace: a signature by other keys, or what is remembered", "digest", set.Digest, "revision", seal.Revision)
		return r.targetOf(name, seal.Statement), 0, nil // nothing that brokers have to be brought at once
	}
	log.FromContext(ctx).Info("wrote the set of a namespace", "profiles", len(set.Names), "digest", set.Digest, "revision", seal.Revision)
	return distribute.Target{Digest: set.Digest, Revision: seal.Revision, Written: time.Now()}, 0, nil
}

// wrote takes in what is in the namespace's ConfigMap now.
func (r *namespaceReconciler) wrote(namespace *corev1.Namespace, set guarded, seal sealed) {
	r.guard.wrote(namespace, set.state)
	r.sealer.wrote(namespace, seal)
	if !set.state.IsNew() {
		r.baselines.record.note(namespace, given{seal.revision, givenSet(seal.Digest)})
	}
}

// targetOf is a set that is in place, written by this process or found.
func (r *namespaceReconciler) targetOf(name string, statement signed.Statement) distribute.Target {
	if target := r.target(name); target.Digest == statement.Digest && target.Revision == statement.Revision {
		return target
	}
	return distribute.Target{Digest: statement.Digest, Revision: statement.Revision}
}

// inPlace is the set in a ConfigMap, where nothing better is known. One that is not
// validly signed counts with any revision.
func (r *namespaceReconciler) inPlace(ctx context.Context, namespace *corev1.Namespace, found *corev1.ConfigMap) distribute.Target {
	if found == nil {
		return distribute.Target{}
	}
	file, ok := found.Data[profile.FileName]
	if !ok {
		return distribute.Target{}
	}
	statement, valid, err := r.sealer.inPlace(ctx, namespace, found)
	if !valid || err != nil {
		statement = signed.Statement{Digest: profile.Digest([]byte(file))}
	}
	return r.targetOf(namespace.Name, statement)
}

func (r *namespaceReconciler) target(name string) distribute.Target {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.targets[name]
}

// failing is for how long the set of a namespace has failed to be written.
func (r *namespaceReconciler) failing(name string, err error, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.failed, name)
		return 0
	}
	since, again := r.failed[name]
	if !again {
		r.failed[name], since = now, now
	}
	return now.Sub(since)
}

// aim has the distributor bring the set into brokers, before anything else is
// done.
func (r *namespaceReconciler) aim(name string, target distribute.Target) {
	r.mu.Lock()
	r.targets[name] = target
	r.mu.Unlock()
	r.distributor.Aim(name, target)
}

func (r *namespaceReconciler) forget(name string) {
	r.mu.Lock()
	delete(r.targets, name)
	delete(r.failed, name)
	delete(r.named, name)
	r.mu.Unlock()
	r.definitions.forget(name)
	r.configMaps.forget(name)
	r.guard.forget(name)
	r.baselines.forget(name)
	r.sealer.forget(name)
	r.distributor.Forget(name)
	r.board.forget(name)
	r.changed(name)
}

// excluded reports whether a namespace never gets profiles.
func excluded(name, operatorNamespace string) bool {
	return contract.IsExcluded(name, operatorNamespace)
}
