// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// object is a profile of either kind.
type object struct {
	client.Object
	spec   *v1alpha1.ProfileSpec
	status *v1alpha1.ProfileStatus
	// namespaces are the namespaces of the profile. They belong to the cache.
	namespaces []*corev1.Namespace
}

// get returns the object of a request, which names a ClusterCryptoProfile if it has no namespace.
// It leaves out the namespaces of an object without a rollout.
func (r *reconciler) get(ctx context.Context, name types.NamespacedName) (object, error) {
	if name.Namespace == "" {
		return r.getCluster(ctx, name)
	}
	var p v1alpha1.CryptoProfile
	if err := r.client.Get(ctx, name, &p); err != nil {
		return object{}, err
	}
	var ns corev1.Namespace
	if err := r.client.Get(ctx, types.NamespacedName{Name: name.Namespace}, &ns); err != nil {
		return object{}, err
	}
	return object{Object: &p, spec: &p.Spec, status: &p.Status, namespaces: []*corev1.Namespace{&ns}}, nil
}

func (r *reconciler) getCluster(ctx context.Context, name types.NamespacedName) (object, error) {
	var p v1alpha1.ClusterCryptoProfile
	if err := r.client.Get(ctx, name, &p); err != nil {
		return object{}, err
	}
	o := object{Object: &p, spec: &p.Spec.ProfileSpec, status: &p.Status.ProfileStatus}
	if p.Spec.Rollout == nil {
		return o, nil
	}
	var all corev1.NamespaceList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return object{}, err
	}
	for i := range all.Items {
		ns := &all.Items[i]
		if !contract.IsExcluded(ns.Name, r.operatorNamespace) && ns.DeletionTimestamp.IsZero() && render.Selects(&p.Spec, ns.Labels) {
			o.namespaces = append(o.namespaces, ns)
		}
	}
	return o, nil
}

// verdict returns the verdict on the object in a namespace. It returns false if there is none
// about the current version of the object.
func (o object) verdict(known state.Namespace) (render.Verdict, bool) {
	if known.Decision == nil {
		return render.Verdict{}, false
	}
	verdicts := known.Decision.Namespaced
	if o.GetNamespace() == "" {
		verdicts = known.Decision.Cluster
	}
	verdict := verdicts[o.GetName()]
	return verdict, verdict.Version == render.VersionOf(o)
}

// request is an action that the annotation of the object requests.
type request struct {
	// promoted is the number of the last step whose pause is over.
	promoted int32
	// all requests that all pods get the new profile, and back requests that all get the old one.
	all, back bool
}

// requestOf reads the annotation of an object: "<attempt>/2" ends the pauses up to step 2,
// "<attempt>" is for all pods, and "<attempt>/return" goes back. A request about another attempt
// than status.rollout has no effect.
func requestOf(o object) request {
	about, what, isPart := strings.Cut(o.GetAnnotations()[v1alpha1.PromoteAnnotation], "/")
	switch {
	case o.status.Rollout == nil || about != o.status.Rollout.Attempt:
		return request{}
	case !isPart:
		return request{all: true}
	case what == v1alpha1.PromoteReturn:
		return request{back: true}
	}
	step, err := strconv.ParseInt(what, 10, 32)
	if err != nil {
		return request{}
	}
	return request{promoted: int32(step)}
}

// write writes status.rollout of an object, or removes it.
func (r *reconciler) write(ctx context.Context, o object, status *v1alpha1.RolloutStatus) error {
	var replaced map[string]any
	if status != nil {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
		if err != nil {
			return err
		}
		// A merge patch keeps fields that it does not name.
		replaced = map[string]any{"confirmed": nil, "message": nil}
		maps.Copy(replaced, fields)
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion()},
		"status":   map[string]any{"rollout": replaced},
	})
	if err != nil {
		return err
	}
	return r.client.Status().Patch(ctx, o.Object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
}
