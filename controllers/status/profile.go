// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/statuspatch"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// collectPause is how long a request waits, so that events at about the same time become one
// status.
const collectPause = 50 * time.Millisecond

// profileReconciler writes the status of all CryptoProfiles of a namespace.
// Requests name a namespace.
type profileReconciler struct {
	client      client.Client
	namespaces  *state.Store
	totals      *totals
	distributor *distribute.Distributor
	conditions  conditions
	reporter    *reporter
	memory      *memory
	// cluster is the queue of ClusterCryptoProfiles that need a status.
	cluster queue.Queue
}

func (r *profileReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	known, _ := r.namespaces.Get(request.Name)
	brokers := r.distributor.Summary(request.Name)
	for _, name := range r.totals.update(request.Name, r.shares(request.Name, known.Decision, brokers)) {
		r.cluster.AddAfter(queue.Request(name), collectPause)
	}
	if known.Decision == nil {
		r.memory.retain(request.Name, func(string) bool { return false })
		return reconcile.Result{}, nil
	}
	if err := r.reporter.reportSet(ctx, request.Name, brokers); err != nil {
		return reconcile.Result{}, err
	}

	var profiles v1alpha1.CryptoProfileList
	if err := r.client.List(ctx, &profiles, client.InNamespace(request.Name), client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, err
	}
	names := make(map[string]bool, len(profiles.Items))
	for i := range profiles.Items {
		names[profiles.Items[i].Name] = true
	}
	r.memory.retain(request.Name, func(name string) bool { return names[name] })
	all := common{decided: known.Decision, brokers: brokers}
	if brokers.Partial > 0 {
		all.withdrawn = r.distributor.Withdrawn(request.Name)
	}
	var due []pending
	var soon time.Duration
	for i := range profiles.Items {
		one, delay := r.compare(&profiles.Items[i], all)
		if delay > 0 {
			soon = sooner(soon, delay)
		} else if one != nil {
			due = append(due, *one)
		}
	}
	later, err := r.write(ctx, request.Name, due, all)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: sooner(soon, later)}, nil
}

// sooner returns the shorter of two delays, either of which may be 0 for none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// common has the values that all profiles of a namespace share.
type common struct {
	decided *state.Decision
	brokers distribute.Summary
	// withdrawn are the profiles that some of the brokers took out of service.
	withdrawn map[string]time.Time
}

// pending is a status that has to be written.
type pending struct {
	// profile belongs to the cache.
	profile *v1alpha1.CryptoProfile
	status  *v1alpha1.ProfileStatus
	// numbersSince is the time since which it differs only in numbers. It is zero if it differs
	// in more.
	numbersSince time.Time
}

// compare returns the status of a profile if it has to be written now, and nil otherwise. It also
// returns the time after which to try again, or 0.
func (r *profileReconciler) compare(p *v1alpha1.CryptoProfile, all common) (*pending, time.Duration) {
	decided := all.decided
	verdict, judged := verdictOn(p, decided)
	if !p.DeletionTimestamp.IsZero() {
		verdict, judged = deleting, true
	}
	if !judged {
		return nil, 0 // the reconciler of the set has not seen it yet
	}
	name := client.ObjectKeyFromObject(p)
	if r.memory.isBehind(name, p.ResourceVersion) {
		return nil, collectPause
	}
	status := p.Status.DeepCopy()
	served := distribute.Summary{Pods: all.brokers.Pods}
	status.Digest = ""
	if verdict.Accepted {
		served, status.Digest = all.brokers, decided.Digest
		served.WithdrawnSince = all.withdrawn[render.Name(p.Name, &p.Spec)]
	}
	isUrgent := r.conditions.fill(status, p, &p.Spec, verdict, served)
	isUrgent = setWithheld(&status.Conditions, p.Generation, withheldOf(decided, downgrade.KindNamespaced, p.Name)) || isUrgent
	r.memory.found(name, status.Conditions)
	differs := differenceOf(status, &p.Status, sameButDigest(status, &p.Status), isUrgent)
	delay, numbersSince := r.memory.delay(name, differs, settled(served), 1, time.Now())
	if differs == same || delay > 0 {
		return nil, delay
	}
	return &pending{p, status, numbersSince}, 0
}

// write writes statuses of a namespace. First it writes statuses that differ in more than
// numbers, and then as many others as it may, in the order of the time for which they have
// differed. It returns the time after which to continue, or 0 if it has written all of them.
func (r *profileReconciler) write(ctx context.Context, namespace string, due []pending, all common) (time.Duration, error) {
	slices.SortFunc(due, func(a, b pending) int { return a.numbersSince.Compare(b.numbersSince) })
	begin, numbers := time.Now(), 0
	wait := r.memory.numbersWait(namespace, begin)
	for _, one := range due {
		if !one.numbersSince.IsZero() {
			if wait > 0 {
				return wait, nil
			}
			if numbers == maxNumbers {
				return max(collectPause, r.memory.numbersWait(namespace, time.Now())), nil
			}
			numbers++
			r.memory.wroteNumbers(namespace, numbers, begin)
		}
		if err := r.writeOne(ctx, one, all); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// writeOne writes the status of a profile.
func (r *profileReconciler) writeOne(ctx context.Context, one pending, all common) error {
	before, p := one.profile.Status.Conditions, one.profile.DeepCopy()
	written, err := statuspatch.Write(ctx, r.client, p, one.status, fieldRollout)
	if err != nil || !written {
		return err
	}
	r.memory.wrote(client.ObjectKeyFromObject(p), p.ResourceVersion)
	r.reporter.reportProfile(r.memory, p, before, one.status.Conditions, all.brokers.Took)
	return nil
}

// shares returns the states of ClusterCryptoProfiles in a namespace, by metadata.name. decided is
// nil if nothing is decided.
func (r *profileReconciler) shares(namespace string, decided *state.Decision, brokers distribute.Summary) map[string]*share {
	if decided == nil {
		return nil
	}
	shares := make(map[string]*share, len(decided.Cluster))
	withoutProfile := &distribute.Summary{Pods: brokers.Pods}
	for name, verdict := range decided.Cluster {
		verdict = withSet(verdict, decided)
		counted := &brokers
		if !verdict.Accepted {
			counted = withoutProfile
		}
		shares[name] = &share{
			inNamespace: r.conditions.inNamespace(namespace, decided.Digest, verdict, brokers),
			verdict:     verdict,
			brokers:     counted,
			withheld:    withheldOf(decided, downgrade.KindCluster, name),
		}
	}
	return shares
}

// withSet adds problems of the whole set to the verdict on a profile.
func withSet(verdict render.Verdict, decided *state.Decision) render.Verdict {
	if verdict.Accepted && decided.Failure != "" {
		verdict.Accepted, verdict.Reason, verdict.Message = false, v1alpha1.ReasonNotWritten, decided.Failure
	}
	verdict.Held = decided.Held
	return verdict
}

// sameButDigest reports whether two statuses differ at most in the digest of the set,
// which changes whenever another profile of the set does.
func sameButDigest(a, b *v1alpha1.ProfileStatus) bool {
	if (a.Digest == "") != (b.Digest == "") {
		return false
	}
	other := *b
	other.Digest = a.Digest
	return equality.Semantic.DeepEqual(a, &other)
}

// verdictOn returns the verdict on a CryptoProfile. It returns false if the decision is about
// another version of it.
func verdictOn(p *v1alpha1.CryptoProfile, decided *state.Decision) (render.Verdict, bool) {
	if decided.Excluded {
		return render.Verdict{
			Version: render.VersionOf(p),
			Reason:  v1alpha1.ReasonNamespaceExcluded,
			Message: "Namespace " + p.Namespace + " never gets profiles: brokers are not injected into its pods.",
		}, true
	}
	verdict, ok := decided.Namespaced[p.Name]
	return withSet(verdict, decided), ok && verdict.Version == render.VersionOf(p)
}
