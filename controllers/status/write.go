// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/event"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// maxConditionMessage is the API's limit of a condition's message in bytes.
const maxConditionMessage = 32768

// fill fills in the status, and reports whether more than numbers changed.
func (c conditions) fill(status *v1alpha1.ProfileStatus, object client.Object, spec *v1alpha1.ProfileSpec, verdict render.Verdict, s distribute.Summary) bool {
	generation := object.GetGeneration()
	urgent := status.ObservedGeneration != generation
	status.ObservedGeneration = generation
	status.ProfileName = render.Name(object.GetName(), spec)
	assessment := c.assessments.of(object, spec)
	status.Strength, status.Weakest, status.FIPS, status.Operations = assessment.Strength, assessment.Weakest, assessment.FIPS, assessment.Operations
	status.Pods = int32(s.Pods)
	status.UpdatedPods = int32(s.Updated)
	status.UnverifiedPods = int32(s.Unverified)
	accepted, propagated, degraded := accepted(verdict), c.propagated(s, verdict, status.Rollout), c.degraded(s, verdict)
	urgent = set(&status.Conditions, accepted, generation) || urgent
	for _, other := range []metav1.Condition{propagated, degraded, ready(accepted, degraded, propagated)} {
		set(&status.Conditions, other, generation)
	}
	setStalled(&status.Conditions, verdict, status.Rollout, generation)
	return urgent
}

// set puts a condition into the list, and reports whether that changed the list.
func set(all *[]metav1.Condition, c metav1.Condition, generation int64) bool {
	c.ObservedGeneration = generation
	c.Message = event.Truncate(c.Message, maxConditionMessage)
	return meta.SetStatusCondition(all, c)
}

// differenceOf returns how a status differs from the one that is written. isUrgent is
// what fill returned.
func differenceOf(status, written *v1alpha1.ProfileStatus, equal, isUrgent bool) difference {
	switch {
	case equal:
		return same
	case isUrgent:
		return urgent
	case !sameReasons(status.Conditions, written.Conditions):
		return inReasons
	default:
		return inNumbers
	}
}

// sameReasons reports whether two lists have the same conditions, each with the same
// status and reason.
func sameReasons(a, b []metav1.Condition) bool {
	return slices.EqualFunc(a, b, func(a, b metav1.Condition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
	})
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

// replacing returns the status with a null for each field that only the object's
// present status has, since a merge patch keeps fields that it does not name.
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
	delete(after, "rollout")                       // its own reconciler writes it
	for name := range fields {
		if _, kept := after[name]; !kept && name != "rollout" {
			after[name] = nil
		}
	}
	return after, nil
}
