// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/queue"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// reportPause collects what happens at the same time into one status.
const reportPause = 50 * time.Millisecond

// statusReconciler writes the status of all CryptoProfiles of a namespace.
// Requests name a namespace.
type statusReconciler struct {
	client      client.Client
	board       *board
	tally       *tally
	distributor *distribute.Distributor
	propagator  propagator
	announcer   *announcer
	pace        *pace
	own         *versions
	// cluster is where ClusterCryptoProfiles wait for their status.
	cluster queue.Queue
}

func (r *statusReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	decided, ok := r.board.get(request.Name)
	brokers := r.distributor.Summary(request.Name)
	for _, name := range r.tally.update(request.Name, r.shares(request.Name, decided, brokers)) {
		r.cluster.AddAfter(requestFor("", name), reportPause)
	}
	if !ok {
		r.announcer.forget(request.Name)
		r.pace.retain(request.Name, func(string) bool { return false })
		return reconcile.Result{}, nil
	}
	if err := r.announcer.announce(ctx, request.Name, brokers); err != nil {
		return reconcile.Result{}, err
	}

	var profiles v1alpha1.CryptoProfileList
	if err := r.client.List(ctx, &profiles, client.InNamespace(request.Name)); err != nil {
		return reconcile.Result{}, err
	}
	r.pace.retain(request.Name, func(name string) bool {
		return slices.ContainsFunc(profiles.Items, func(p v1alpha1.CryptoProfile) bool { return p.Name == name })
	})
	var result reconcile.Result
	for i := range profiles.Items {
		p := &profiles.Items[i]
		verdict, judged := decided.verdict(p)
		if !p.DeletionTimestamp.IsZero() {
			verdict, judged = deleting, true
		}
		if !judged {
			continue // the namespace reconciler has yet to see it
		}
		if r.own.pending(client.ObjectKeyFromObject(p), p.ResourceVersion) {
			result = sooner(result, reportPause)
			continue
		}
		status := p.Status.DeepCopy()
		served := distribute.Summary{Pods: brokers.Pods}
		status.Digest = ""
		if verdict.Accepted {
			served, status.Digest = brokers, decided.digest
			served.WithdrawnSince = r.distributor.WithdrawnSince(request.Name, render.Name(p.Name, &p.Spec))
		}
		urgent := r.propagator.fill(status, p, &p.Spec, verdict, served)
		urgent = setWithheld(&status.Conditions, p.Generation, decided.withheldOf(downgrade.KindNamespaced, p.Name)) || urgent
		differs := !sameButDigest(status, &p.Status)
		pause := r.pace.wait(client.ObjectKeyFromObject(p), differs, urgent, settled(served), time.Now())
		if !differs {
			continue
		}
		if pause > 0 {
			result = sooner(result, pause)
			continue
		}
		before := p.Status.Conditions
		if written, err := writeStatus(ctx, r.client, p, status); err != nil {
			return reconcile.Result{}, err
		} else if written {
			r.own.wrote(client.ObjectKeyFromObject(p), p.ResourceVersion)
			r.announcer.tell(p, before, status.Conditions, brokers.Took)
		}
	}
	return result, nil
}

// shares are what is known of ClusterCryptoProfiles in a namespace.
func (r *statusReconciler) shares(namespace string, decided outcome, brokers distribute.Summary) map[string]*share {
	shares := make(map[string]*share, len(decided.cluster))
	for name, verdict := range decided.cluster {
		if verdict.Accepted && decided.failure != "" {
			verdict.Accepted, verdict.Reason, verdict.Message = false, v1alpha1.ReasonNotWritten, decided.failure
		}
		verdict.Held = decided.held
		counted := brokers
		if !verdict.Accepted {
			counted = distribute.Summary{Pods: brokers.Pods}
		}
		shares[name] = &share{
			inNamespace: r.propagator.inNamespace(namespace, decided.digest, verdict, brokers),
			verdict:     verdict,
			brokers:     counted,
			withheld:    decided.withheldOf(downgrade.KindCluster, name),
		}
	}
	return shares
}

// sameButDigest reports whether two statuses say the same of a profile. The set that
// it is part of is another one whenever another profile changes.
func sameButDigest(a, b *v1alpha1.ProfileStatus) bool {
	if (a.Digest == "") != (b.Digest == "") {
		return false
	}
	other := *b
	other.Digest = a.Digest
	return equality.Semantic.DeepEqual(a, &other)
}

// sooner comes back after the pause, or earlier if that was planned already.
func sooner(planned reconcile.Result, pause time.Duration) reconcile.Result {
	if planned.RequeueAfter == 0 || pause < planned.RequeueAfter {
		planned.RequeueAfter = pause
	}
	return planned
}

// verdict is what the outcome says about a CryptoProfile; false when it is about
// another generation of it.
func (o outcome) verdict(p *v1alpha1.CryptoProfile) (render.Verdict, bool) {
	if o.excluded {
		return render.Verdict{
			Generation: p.Generation,
			Reason:     v1alpha1.ReasonNamespaceExcluded,
			Message:    "Namespace " + p.Namespace + " never gets profiles: brokers are not injected into its pods.",
		}, true
	}
	verdict, ok := o.namespaced[p.Name]
	if verdict.Accepted && o.failure != "" {
		verdict.Accepted, verdict.Reason, verdict.Message = false, v1alpha1.ReasonNotWritten, o.failure
	}
	verdict.Held = o.held
	return verdict, ok && verdict.Generation == p.Generation
}

// fill makes the status say what is known, and returns true when that is more
// than new numbers.
func (p propagator) fill(status *v1alpha1.ProfileStatus, object client.Object, spec *v1alpha1.ProfileSpec, verdict render.Verdict, s distribute.Summary) bool {
	generation := object.GetGeneration()
	urgent := status.ObservedGeneration != generation
	status.ObservedGeneration = generation
	status.ProfileName = render.Name(object.GetName(), spec)
	worth := p.assessments.of(object, spec)
	status.Strength, status.Weakest, status.FIPS, status.Operations = worth.Strength, worth.Weakest, worth.FIPS, worth.Operations
	status.Pods = int32(s.Pods)
	status.UpdatedPods = int32(s.Updated)
	status.UnverifiedPods = int32(s.Unverified)
	urgent = set(&status.Conditions, accepted(verdict), generation) || urgent
	set(&status.Conditions, p.propagated(s, verdict.Accepted), generation)
	set(&status.Conditions, p.degraded(s, verdict), generation)
	return urgent
}

// set puts a condition into the list and returns true when that changed it.
func set(conditions *[]metav1.Condition, c metav1.Condition, generation int64) bool {
	c.ObservedGeneration = generation
	c.Message = cut(c.Message, maxConditionMessage)
	return meta.SetStatusCondition(conditions, c)
}

// writeStatus replaces the whole status of an object, zeros included, which
// `kubectl get` would show as blanks otherwise. It returns false when the object
// is gone, or another one of its name is there.
func writeStatus(ctx context.Context, c client.Client, object client.Object, status any) (bool, error) {
	replaced, err := replacing(object, status)
	if err != nil {
		return false, err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": object.GetUID()},
		"status":   replaced,
	})
	if err != nil {
		return false, err
	}
	err = c.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// replacing is the status with a null for each field that the object's status
// has and it has not: a merge patch keeps what it does not name.
func replacing(object client.Object, status any) (map[string]any, error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, err
	}
	fields, _ := before["status"].(map[string]any) // there is none in an object that is new
	for name := range fields {
		if _, kept := after[name]; !kept {
			after[name] = nil
		}
	}
	return after, nil
}
