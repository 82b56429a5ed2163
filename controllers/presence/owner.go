// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// looksUp are the kinds whose own controller is looked up. Their objects replace each
// other over time.
var looksUp = map[string]string{"ReplicaSet": "apps/v1", "Job": "batch/v1"}

// directOwner returns the controller of a pod, or the pod itself.
func directOwner(pod *corev1.Pod) corev1.ObjectReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	}
	return corev1.ObjectReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name, UID: owner.UID}
}

// topOwner returns the owner that users know: the controller of a ReplicaSet or Job, or the given
// owner. It reads only metadata, from the API server, because a cache of all objects of a cluster
// would cost more than these few reads.
func topOwner(ctx context.Context, live client.Reader, owner corev1.ObjectReference) (corev1.ObjectReference, error) {
	if looksUp[owner.Kind] != owner.APIVersion {
		return owner, nil
	}
	var object metav1.PartialObjectMetadata
	object.APIVersion, object.Kind = owner.APIVersion, owner.Kind
	err := live.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}, &object)
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		return owner, fmt.Errorf("look up what controls %s %s/%s: %w", owner.Kind, owner.Namespace, owner.Name, err)
	}
	above := metav1.GetControllerOfNoCopy(&object)
	if gone || object.UID != owner.UID || above == nil {
		return owner, nil
	}
	return corev1.ObjectReference{APIVersion: above.APIVersion, Kind: above.Kind, Namespace: owner.Namespace, Name: above.Name, UID: above.UID}, nil
}
