// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
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
	err = annotate(ctx, d.pods, request.NamespacedName, uid, value)

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
		return reconcile.Result{}, nil // another pod has the name now, and has its own event
	}
	if err != nil {
		return reconcile.Result{Priority: &priority}, err
	}
	patches.WithLabelValues(strconv.Itoa(min(try, MaxTries))).Inc()
	d.asking.AddWithOpts(priorityqueue.AddOpts{After: d.untilQuestion(), Priority: &priority}, request)
	return reconcile.Result{}, nil
}

// untilQuestion returns how long after its annotation a broker is asked first.
func (d *Distributor) untilQuestion() time.Duration {
	if d.writing.Len() > crowd {
		return crowdDelay
	}
	return firstDelay
}

// metadataOnly is the response that annotate asks for: metadata, in the form that is encoded
// quickest. Errors come as JSON.
const metadataOnly = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// podClient returns a client that writes annotations. It is not the manager's client, which
// looks up the resource of each pod and decodes each response.
func podClient(config *rest.Config, scheme *runtime.Scheme, connections *http.Client) (rest.Interface, error) {
	return apiutil.RESTClientForGVK(corev1.SchemeGroupVersion.WithKind("Pod"), false, false, config, serializer.NewCodecFactory(scheme), connections)
}

// annotate writes the annotation, and removes the snapshot. Because of the UID the API
// server refuses the write if another pod has the name by now.
//
// The ConfigMap counts before the snapshot, and a broker keeps the set that it serves. So
// the snapshot has no use any more. Each write of the pod would store it again.
func annotate(ctx context.Context, pods rest.Interface, name types.NamespacedName, uid types.UID, value string) error {
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
	return pods.Patch(types.StrategicMergePatchType).
		Namespace(name.Namespace).Resource("pods").Name(name.Name).SubResource("status").
		Param("fieldManager", v1alpha1.FieldManager).
		Param("fieldValidation", metav1.FieldValidationIgnore).
		SetHeader("Accept", metadataOnly).
		Body(patch).Do(ctx).Error()
}
