// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// clusterStatusReconciler writes the status of a ClusterCryptoProfile, summed
// over its namespaces.
type clusterStatusReconciler struct {
	client            client.Client
	tally             *tally
	distributor       *distribute.Distributor
	propagator        propagator
	announcer         *announcer
	pace              *pace
	own               *versions
	operatorNamespace string

	mu sync.Mutex
	// complete is the generation of each profile of which all namespaces have been
	// heard. Those that come and go after that tell of themselves.
	complete map[string]int64
}

func (r *clusterStatusReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var p v1alpha1.ClusterCryptoProfile
	if err := r.client.Get(ctx, request.NamespacedName, &p); apierrors.IsNotFound(err) {
		r.pace.retain("", func(name string) bool { return name != request.Name })
		r.own.forget(request.NamespacedName)
		r.mu.Lock()
		delete(r.complete, request.Name)
		r.mu.Unlock()
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	if r.own.pending(request.NamespacedName, p.ResourceVersion) {
		return reconcile.Result{RequeueAfter: reportPause}, nil
	}
	all := everywhere{}
	if p.DeletionTimestamp.IsZero() {
		var complete bool
		var err error
		all, complete = r.tally.everywhere(p.Name, p.Generation)
		if complete {
			complete, err = r.isComplete(ctx, &p, all.namespaces)
		}
		if err != nil || !complete {
			return reconcile.Result{}, err // what is missing brings the request back
		}
		for _, namespace := range all.partial {
			since := r.distributor.WithdrawnSince(namespace, render.Name(p.Name, &p.Spec.ProfileSpec))
			all.brokers.WithdrawnSince = distribute.Earlier(all.brokers.WithdrawnSince, since)
		}
	}

	status := p.Status.DeepCopy()
	status.Namespaces = int32(all.namespaces)
	verdict := all.verdict(&p)
	if !p.DeletionTimestamp.IsZero() {
		verdict = deleting
	}
	if all.held != "" {
		verdict.Held = fmt.Sprintf("Namespace %q: %s", all.heldIn, all.held)
	}
	status.PerNamespace = all.perNamespace
	urgent := r.propagator.fill(&status.ProfileStatus, &p, &p.Spec.ProfileSpec, verdict, all.brokers)
	urgent = setWithheld(&status.Conditions, p.Generation, all.withheld) || urgent
	differs := !sameButDigests(status, &p.Status)
	pause := r.pace.wait(request.NamespacedName, differs, urgent, settled(all.brokers), time.Now())
	if !differs {
		return reconcile.Result{}, nil
	}
	if pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	before := p.Status.Conditions
	if written, err := writeStatus(ctx, r.client, &p, status); err != nil {
		return reconcile.Result{}, err
	} else if written {
		r.own.wrote(request.NamespacedName, p.ResourceVersion)
		r.announcer.tell(&p, before, status.Conditions, r.tally.took(p.Name))
	}
	return reconcile.Result{}, nil
}

// everywhere is what is known of a ClusterCryptoProfile in its namespaces.
type everywhere struct {
	namespaces int
	brokers    distribute.Summary
	// withheld are the changes that are weaker and not allowed.
	withheld []downgrade.Change
	// refused is in how many namespaces it is not part of the set; the first
	// of these, by name, and why.
	refused     int
	refusedIn   string
	refusedWith render.Verdict
	// held says why the first namespace with a set that is held has it, by name.
	heldIn, held string
	// perNamespace are those of which the status tells.
	perNamespace []v1alpha1.NamespaceStatus
	// partial are those with brokers that serve the set without some profiles.
	partial []string
}

// sameButDigests reports whether two statuses say the same of a profile. The sets that
// it is part of are others whenever another profile changes.
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
// looks at all namespaces once for each generation: when a profile is new, when it
// has changed, and when this process has just begun.
func (r *clusterStatusReconciler) isComplete(ctx context.Context, p *v1alpha1.ClusterCryptoProfile, heard int) (bool, error) {
	r.mu.Lock()
	was := r.complete[p.Name] == p.Generation
	r.mu.Unlock()
	if was {
		return true, nil
	}
	var namespaces corev1.NamespaceList
	if err := r.client.List(ctx, &namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return false, err
	}
	selected := 0
	for i := range namespaces.Items {
		ns := &namespaces.Items[i]
		if ns.DeletionTimestamp.IsZero() && !excluded(ns.Name, r.operatorNamespace) && render.Selects(&p.Spec, ns.Labels) {
			selected++
		}
	}
	if heard < selected {
		return false, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complete[p.Name] = p.Generation
	return true, nil
}

// verdict is the verdict on the profile as a whole. What is wrong with the
// profile itself is known without any namespace.
func (all everywhere) verdict(p *v1alpha1.ClusterCryptoProfile) render.Verdict {
	errs := render.Validate(p.Name, &p.Spec.ProfileSpec)
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
