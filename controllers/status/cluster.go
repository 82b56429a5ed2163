// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/statuspatch"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// clusterReconciler writes the status of a ClusterCryptoProfile, summed over its
// namespaces. Requests name a ClusterCryptoProfile.
type clusterReconciler struct {
	client            client.Client
	totals            *totals
	distributor       *distribute.Distributor
	conditions        conditions
	reporter          *reporter
	memory            *memory
	operatorNamespace string
}

func (r *clusterReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var p v1alpha1.ClusterCryptoProfile
	if err := r.client.Get(ctx, request.NamespacedName, &p); apierrors.IsNotFound(err) {
		r.memory.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	if r.memory.isBehind(request.NamespacedName, p.ResourceVersion) {
		return reconcile.Result{RequeueAfter: collectPause}, nil
	}
	all, complete, err := r.sum(ctx, &p)
	if err != nil || !complete {
		return reconcile.Result{}, err // a missing part causes another request
	}

	status := p.Status.DeepCopy()
	status.Namespaces = int32(all.namespaces)
	status.PerNamespace = all.perNamespace
	problems := r.conditions.assessments.of(&p, &p.Spec.ProfileSpec).Problems
	isUrgent := r.conditions.fill(&status.ProfileStatus, &p, &p.Spec.ProfileSpec, all.verdict(&p, problems), all.brokers)
	isUrgent = setWithheld(&status.Conditions, p.Generation, all.withheld) || isUrgent
	r.memory.found(request.NamespacedName, status.Conditions)
	differs := differenceOf(&status.ProfileStatus, &p.Status.ProfileStatus, sameButDigests(status, &p.Status), isUrgent)
	delay, _ := r.memory.delay(request.NamespacedName, differs, settled(all.brokers), r.totals.count(), time.Now())
	if differs == same {
		return reconcile.Result{}, nil
	}
	if delay > 0 {
		return reconcile.Result{RequeueAfter: delay}, nil
	}
	before := p.Status.Conditions
	written, err := statuspatch.Write(ctx, r.client, &p, status, fieldRollout)
	if err != nil || !written {
		return reconcile.Result{}, err
	}
	r.memory.wrote(request.NamespacedName, p.ResourceVersion)
	r.reporter.reportProfile(r.memory, &p, before, status.Conditions, r.totals.took(p.Name))
	return reconcile.Result{}, nil
}

// sum returns the total of a profile over its namespaces, and false while some of them
// have not been reconciled. A profile that is being deleted counts as in none.
func (r *clusterReconciler) sum(ctx context.Context, p *v1alpha1.ClusterCryptoProfile) (total, bool, error) {
	if !p.DeletionTimestamp.IsZero() {
		return total{}, true, nil
	}
	all, complete := r.totals.of(p.Name, render.VersionOf(p))
	if !complete {
		return total{}, false, nil
	}
	if complete, err := r.isComplete(ctx, p, all.namespaces); err != nil || !complete {
		return total{}, false, err
	}
	for _, namespace := range all.partial {
		since := r.distributor.Withdrawn(namespace)[render.Name(p.Name, &p.Spec.ProfileSpec)]
		all.brokers.WithdrawnSince = distribute.Earlier(all.brokers.WithdrawnSince, since)
	}
	return all, true, nil
}

// total is what is known of a ClusterCryptoProfile over its namespaces.
type total struct {
	namespaces int
	brokers    distribute.Summary
	// withheld are the changes that are weaker and not allowed.
	withheld []downgrade.Change
	// refused is the number of namespaces whose sets do not have the profile.
	// refusedIn is the first of them, and refusedWith its verdict.
	refused     int
	refusedIn   string
	refusedWith render.Verdict
	// rolling is the digest of the profile where it has not reached all brokers of a
	// namespace, empty otherwise.
	rolling string
	// heldIn is the first namespace, by name, whose set is held, and held says why.
	heldIn, held string
	// perNamespace are the namespaces that the status lists.
	perNamespace []v1alpha1.NamespaceStatus
	// partial are the namespaces with brokers that serve the set without some
	// profiles.
	partial []string
}

// sameButDigests reports whether two statuses differ at most in the digests of sets,
// which change whenever another profile of a set does.
func sameButDigests(a, b *v1alpha1.ClusterProfileStatus) bool {
	other := *b
	other.PerNamespace = slices.Clone(b.PerNamespace)
	for i := range other.PerNamespace {
		if i < len(a.PerNamespace) && (a.PerNamespace[i].Digest == "") == (other.PerNamespace[i].Digest == "") {
			other.PerNamespace[i].Digest = a.PerNamespace[i].Digest
		}
	}
	return equality.Semantic.DeepEqual(a, &other)
}

// isComplete reports whether so many namespaces are all that the profile selects. It
// looks at all namespaces once for each version: when a profile is new, when it
// has changed, and when this process has just begun. Namespaces that come and go after
// that are reconciled, and so update the total.
func (r *clusterReconciler) isComplete(ctx context.Context, p *v1alpha1.ClusterCryptoProfile, known int) (bool, error) {
	name := client.ObjectKeyFromObject(p)
	if r.memory.isComplete(name, render.VersionOf(p)) {
		return true, nil
	}
	var namespaces corev1.NamespaceList
	if err := r.client.List(ctx, &namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return false, err
	}
	selected := 0
	for i := range namespaces.Items {
		ns := &namespaces.Items[i]
		if ns.DeletionTimestamp.IsZero() && !contract.IsExcluded(ns.Name, r.operatorNamespace) && render.Selects(&p.Spec, ns.Labels) {
			selected++
		}
	}
	if known < selected {
		return false, nil
	}
	r.memory.setComplete(name, render.VersionOf(p))
	return true, nil
}

// verdict returns the verdict on the profile as a whole, with the reason why a
// namespace's set is held. problems are those of the profile itself.
func (all total) verdict(p *v1alpha1.ClusterCryptoProfile, problems field.ErrorList) render.Verdict {
	verdict := deleting
	if p.DeletionTimestamp.IsZero() {
		verdict = all.judge(p, problems)
		verdict.Rolling = all.rolling
	}
	if all.held != "" {
		verdict.Held = fmt.Sprintf("Namespace %q: %s", all.heldIn, all.held)
	}
	return verdict
}

// judge returns the verdict on a profile. What is wrong with the profile itself is
// known without any namespace.
func (all total) judge(p *v1alpha1.ClusterCryptoProfile, problems field.ErrorList) render.Verdict {
	errs := slices.Clone(problems) // they are shared
	if p.Spec.NamespaceSelector != nil {
		errs = append(errs, render.ValidateSelector(p.Spec.NamespaceSelector)...)
	}
	switch {
	case len(errs) > 0:
		return render.Verdict{Reason: v1alpha1.ReasonInvalid, Message: render.Sentence(errs)}
	case all.refused > 0:
		return render.Verdict{Reason: all.refusedWith.Reason, Message: fmt.Sprintf(
			"The profile is missing from the sets of %d of its %d namespaces. Namespace %q: %s",
			all.refused, all.namespaces, all.refusedIn, all.refusedWith.Message)}
	case all.namespaces == 0:
		return render.Verdict{Accepted: true, Reason: v1alpha1.ReasonNoNamespaces, Message: "The profile is valid and selects no namespace."}
	case all.namespaces == 1:
		return render.Verdict{Accepted: true, Reason: v1alpha1.ReasonValid, Message: "The profile is part of the set of 1 namespace."}
	default:
		return render.Verdict{Accepted: true, Reason: v1alpha1.ReasonValid, Message: fmt.Sprintf("The profile is part of the sets of %d namespaces.", all.namespaces)}
	}
}
