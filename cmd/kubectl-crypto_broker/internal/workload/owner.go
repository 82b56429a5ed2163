// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Owner is the object by which people know a pod, such as its Deployment.
type Owner struct{ apiVersion, kind, namespace, name string }

// String returns kind/name for kubectl; empty for a pod without an owner.
func (o Owner) String() string {
	if o.kind == "" {
		return ""
	}
	return strings.ToLower(o.kind) + "/" + o.name
}

// Owners finds owners and remembers them.
type Owners struct {
	client kubernetes.Interface
	known  map[types.UID]Owner
}

// NewOwners returns Owners that have found none yet.
func NewOwners(client kubernetes.Interface) *Owners {
	return &Owners{client: client, known: map[types.UID]Owner{}}
}

// Of returns the pod's owner: if a ReplicaSet or a Job controls the pod, the
// controller of that. If the user may not read these, it returns the ReplicaSet or the
// Job.
func (o *Owners) Of(ctx context.Context, pod *corev1.Pod) (Owner, error) {
	direct := metav1.GetControllerOfNoCopy(pod)
	if direct == nil {
		return Owner{}, nil
	}
	if known, ok := o.known[direct.UID]; ok {
		return known, nil
	}
	found := Owner{direct.APIVersion, direct.Kind, pod.Namespace, direct.Name}
	var object metav1.Object
	var err error
	switch direct.APIVersion + " " + direct.Kind {
	case "apps/v1 ReplicaSet":
		object, err = o.client.AppsV1().ReplicaSets(pod.Namespace).Get(ctx, direct.Name, metav1.GetOptions{})
	case "batch/v1 Job":
		object, err = o.client.BatchV1().Jobs(pod.Namespace).Get(ctx, direct.Name, metav1.GetOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return Owner{}, fmt.Errorf("looking up what controls %s: %w", found, err)
	}
	if object != nil && err == nil {
		if above := metav1.GetControllerOfNoCopy(object); above != nil {
			found = Owner{above.APIVersion, above.Kind, pod.Namespace, above.Name}
		}
	}
	o.known[direct.UID] = found
	return found, nil
}
