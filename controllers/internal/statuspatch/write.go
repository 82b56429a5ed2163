// SPDX-License-Identifier: Apache-2.0

// Package statuspatch writes the status of objects.
package statuspatch

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
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/event"
)

// maxConditionMessage is the API's limit of a condition's message in bytes.
const maxConditionMessage = 32768

// SetCondition sets a condition in the list, and reports whether that changed the list.
func SetCondition(all *[]metav1.Condition, c metav1.Condition, generation int64) bool {
	c.ObservedGeneration = generation
	c.Message = event.Truncate(c.Message, maxConditionMessage)
	return meta.SetStatusCondition(all, c)
}

// Write replaces the whole status of an object, zeros included, which
// `kubectl get` would show as blanks otherwise. Fields that others write stay as they are. It
// returns false when the object is gone.
func Write(ctx context.Context, c client.Client, object client.Object, status any, others ...string) (bool, error) {
	replaced, err := replacing(object, status, others)
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
	if IsGone(err) {
		return false, nil
	}
	return err == nil, err
}

// IsGone reports whether a patch with the UID of an object was refused because the object is
// gone, or another one has its name. The API server calls the latter a change of the UID,
// which is invalid. A conflict means that the object is there and others write it all the
// time, so that the API server gave up.
func IsGone(err error) bool {
	cause, invalid := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return apierrors.IsNotFound(err) || invalid && cause.Field == "metadata.uid"
}

// replacing returns the fields of status for a merge patch, without the fields that others names.
// A field that only the object's current status has becomes null, because a merge patch keeps
// fields that it does not name.
func replacing(object client.Object, status any, others []string) (map[string]any, error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, err
	}
	fields, _ := before["status"].(map[string]any) // there is none in an object that is new
	for _, name := range others {
		delete(after, name)
	}
	for name := range fields {
		if _, kept := after[name]; !kept && !slices.Contains(others, name) {
			after[name] = nil
		}
	}
	return after, nil
}
