// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Owner is the object by which people know a pod, such as its Deployment.
type Owner struct{ apiVersion, kind, namespace, name string }

// String returns kind/name for kubectl. It is empty for a pod without an owner.
func (o Owner) String() string {
	if o.kind == "" {
		return ""
	}
	return strings.ToLower(o.kind) + "/" + o.name
}

// Owners finds owners and remembers them. It is safe for concurrent use.
type Owners struct {
	client kubernetes.Interface

	mu    sync.Mutex
	known map[claim]func() (Owner, error)
}

// claim is the controller that a pod claims to have. The API server does not check it. So it has
// the namespace as well: with the UID alone, a pod could claim a controller of another namespace,
// and the pods there would get the owner of this pod.
type claim struct {
	namespace, apiVersion, kind, name string
	uid                               types.UID
}

// NewOwners returns Owners that have found none yet.
func NewOwners(client kubernetes.Interface) *Owners {
	return &Owners{client: client, known: map[claim]func() (Owner, error){}}
}

// Of returns the pod's owner. If a ReplicaSet or a Job controls the pod, it returns the
// controller of that object. If the user may not read the object, it returns the ReplicaSet or
// the Job. It asks the API server once for each of them.
func (o *Owners) Of(ctx context.Context, pod *corev1.Pod) (Owner, error) {
	direct := metav1.GetControllerOfNoCopy(pod)
	if direct == nil {
		return Owner{}, nil
	}
	key := claim{pod.Namespace, direct.APIVersion, direct.Kind, direct.Name, direct.UID}
	o.mu.Lock()
	once, ok := o.known[key]
	if !ok {
		once = sync.OnceValues(func() (Owner, error) { return o.find(ctx, pod.Namespace, direct) })
		o.known[key] = once
	}
	o.mu.Unlock()
	return once()
}

func (o *Owners) find(ctx context.Context, namespace string, direct *metav1.OwnerReference) (Owner, error) {
	found := Owner{direct.APIVersion, direct.Kind, namespace, direct.Name}
	var object metav1.Object
	var err error
	switch direct.APIVersion + " " + direct.Kind {
	case "apps/v1 ReplicaSet":
		object, err = o.client.AppsV1().ReplicaSets(namespace).Get(ctx, direct.Name, metav1.GetOptions{})
	case "batch/v1 Job":
		object, err = o.client.BatchV1().Jobs(namespace).Get(ctx, direct.Name, metav1.GetOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return Owner{}, fmt.Errorf("look up what controls %s: %w", found, err)
	}
	if object != nil && err == nil {
		if above := metav1.GetControllerOfNoCopy(object); above != nil {
			found = Owner{above.APIVersion, above.Kind, namespace, above.Name}
		}
	}
	return found, nil
}
