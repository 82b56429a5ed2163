// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/statuspatch"
)

// write is the reconciler of pod-annotation. It annotates a pod if that is the next
// action, and leaves everything else to ask.
func (d *Distributor) write(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	d.mu.Lock()
	b, err := d.observe(ctx, request.NamespacedName)
	if err != nil || b == nil {
		d.mu.Unlock()
		return reconcile.Result{}, err
	}
	if what, _ := b.next(time.Now()); what != actionAnnotate {
		priority := b.priority()
		d.mu.Unlock()
		d.asking.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
		return reconcile.Result{}, nil
	}
	b.writing = true
	digest, value, uid, try := b.target.Digest, b.nextValue(), b.pod.uid, b.tries+1
	d.mu.Unlock()

	begin := time.Now()
	err = annotate(ctx, d.client, request.NamespacedName, uid, value)

	d.mu.Lock()
	b.writing = false
	switch now := time.Now(); {
	case b.pod.uid != uid:
	case err == nil:
		b.recordWrite(digest, value, now.Sub(begin), now)
		if b.target.Digest == digest {
			d.options.Traces.Annotated(request.NamespacedName, now)
		}
		if b.tries == 1 && b.target.Digest == digest && !b.target.Written.IsZero() {
			stageDuration.WithLabelValues(stageAnnotated).Observe(now.Sub(b.target.Written).Seconds())
		}
	default:
		b.uncertain, b.uncertainFor = value, digest
	}
	priority := b.priority()
	d.mu.Unlock()
	if statuspatch.IsGone(err) {
		return reconcile.Result{}, nil // another pod has the name by now; its own event comes
	}
	if err != nil {
		return reconcile.Result{Priority: &priority}, err
	}
	patches.WithLabelValues(strconv.Itoa(min(try, MaxTries))).Inc()
	d.asking.AddWithOpts(priorityqueue.AddOpts{After: firstDelay, Priority: &priority}, request)
	return reconcile.Result{}, nil
}

// annotate writes the annotation, and removes the snapshot. Because of the UID the API
// server refuses the write if another pod has the name by now.
//
// The ConfigMap counts before the snapshot, and a broker keeps the set that it serves. So
// the snapshot has no use any more. Each write of the pod would store it again.
func annotate(ctx context.Context, c client.Client, name types.NamespacedName, uid types.UID, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": uid,
		"annotations": map[string]any{
			contract.ProfilesDigestAnnotation:            value,
			contract.ProfilesSnapshotAnnotation:          nil,
			contract.ProfilesSnapshotSignatureAnnotation: nil,
		},
	}})
	if err != nil {
		return err
	}
	// What the API server does for one annotation bounds a change of many pods. A merge
	// patch makes it write the pod as JSON and read it again, a strategic merge patch does
	// not. The patch has no fields that it would have to warn of.
	//
	// Only the metadata comes back. Specs and statuses of many pods at a time would
	// cost memory, and are not needed.
	pod := &metav1.PartialObjectMetadata{}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	pod.Namespace, pod.Name = name.Namespace, name.Name
	return c.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch),
		client.FieldOwner(v1alpha1.FieldManager), client.FieldValidation(metav1.FieldValidationIgnore))
}
