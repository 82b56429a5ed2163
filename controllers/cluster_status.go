// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
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
	board             *board
	distributor       *distribute.Distributor
	propagator        propagator
	announcer         *announcer
	pace              *pace
	own               *versions
	operatorNamespace string
}

func (r *clusterStatusReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var p v1alpha1.ClusterCryptoProfile
	if err := r.client.Get(ctx, request.NamespacedName, &p); apierrors.IsNotFound(err) {
		r.pace.retain("", func(name string) bool { return name != request.Name })
		r.own.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	if !p.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	if r.own.pending(request.NamespacedName, p.ResourceVersion) {
		return reconcile.Result{RequeueAfter: reportPause}, nil
	}
	all, complete, err := r.sum(ctx, &p)
	if err != nil || !complete {
		return reconcile.Result{}, err // what is missing brings the request back
	}

	status := p.Status.DeepCopy()
	status.Namespaces = int32(all.namespaces)
	verdict := all.verdict(&p)
	if all.held != "" {
		verdict.Held = fmt.Sprintf("Namespace %q: %s", all.heldIn, all.held)
	}
	status.PerNamespace = all.worst()
	urgent := r.propagator.fill(&status.ProfileStatus, &p, &p.Spec.ProfileSpec, verdict, all.brokers)
	urgent = setWithheld(&status.Conditions, p.Generation, all.withheld) || urgent
	differs := !equality.Semantic.DeepEqual(status, &p.Status)
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
		r.announcer.tell(&p, before, status.Conditions, all.brokers.Took)
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
	// each is what is known of each of them.
	each []inNamespace
}

// sum adds up the namespaces that the profile selects; false when one of them
// has yet to be seen by the namespace reconciler.
func (r *clusterStatusReconciler) sum(ctx context.Context, p *v1alpha1.ClusterCryptoProfile) (all everywhere, complete bool, err error) {
	var namespaces corev1.NamespaceList
	if err := r.client.List(ctx, &namespaces); err != nil {
		return everywhere{}, false, err
	}
	for i := range namespaces.Items {
		ns := &namespaces.Items[i]
		if !ns.DeletionTimestamp.IsZero() || excluded(ns.Name, r.operatorNamespace) || !render.Selects(&p.Spec, ns.Labels) {
			continue
		}
		decided, ok := r.board.get(ns.Name)
		verdict, judged := decided.cluster[p.Name]
		if !ok || !judged || verdict.Generation != p.Generation {
			return everywhere{}, false, nil
		}
		all.namespaces++
		if verdict.Accepted && decided.failure != "" {
			verdict = render.Verdict{Reason: v1alpha1.ReasonNotWritten, Message: decided.failure}
		}
		if decided.held != "" && (all.held == "" || ns.Name < all.heldIn) {
			all.heldIn, all.held = ns.Name, decided.held
		}
		all.withheld = append(all.withheld, decided.withheldOf(downgrade.KindCluster, p.Name)...)
		brokers := r.distributor.Summary(ns.Name)
		brokers.WithdrawnSince = r.distributor.WithdrawnSince(ns.Name, render.Name(p.Name, &p.Spec.ProfileSpec))
		all.each = append(all.each, r.propagator.inNamespace(ns.Name, decided.digest, verdict, brokers))
		if !verdict.Accepted {
			if all.refused == 0 || ns.Name < all.refusedIn {
				all.refusedIn, all.refusedWith = ns.Name, verdict
			}
			all.refused++
			brokers = distribute.Summary{Pods: brokers.Pods}
		}
		all.brokers = sum(all.brokers, brokers)
	}
	return all, true, nil
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
