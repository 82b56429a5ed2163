// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// Scope has the namespaces that a page shows.
type Scope struct {
	// Namespaces is empty for all namespaces.
	Namespaces []string
	// Notice says why the page does not show all namespaces. It is empty if the user has named
	// the namespaces.
	Notice string
}

// String returns the scope for people.
func (s Scope) String() string {
	switch len(s.Namespaces) {
	case 0:
		return "all namespaces"
	case 1:
		return "namespace " + s.Namespaces[0]
	default:
		return "namespaces " + strings.Join(s.Namespaces, ", ")
	}
}

// names returns the namespaces to look into, where an empty name stands for all.
func (s Scope) names() []string {
	if len(s.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return s.Namespaces
}

// AllOr returns the scope of all namespaces if the user may list and watch what the page needs in
// all namespaces, else one namespace.
func AllOr(ctx context.Context, client kubernetes.Interface, namespace string) (Scope, error) {
	for _, right := range []authorizationv1.ResourceAttributes{
		{Verb: "list", Resource: "pods"}, {Verb: "watch", Resource: "pods"},
		{Verb: "list", Group: v1alpha1.GroupVersion.Group, Resource: "cryptoprofiles"}, {Verb: "watch", Group: v1alpha1.GroupVersion.Group, Resource: "cryptoprofiles"},
	} {
		barred, err := barred(ctx, client, right)
		if err != nil {
			return Scope{}, fmt.Errorf("whether all namespaces may be seen is not known: %w", err)
		}
		if barred != "" {
			return Scope{Namespaces: []string{namespace}, Notice: fmt.Sprintf("This page shows only namespace %s, because %s. To see others, name them by --namespaces.", namespace, barred)}, nil
		}
	}
	return Scope{}, nil
}

// barred asks the API server whether the user has a right. If not, it returns a sentence that
// names the right, and otherwise an empty text.
func barred(ctx context.Context, client kubernetes.Interface, right authorizationv1.ResourceAttributes) (string, error) {
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return "", err
	case review.Status.Allowed:
		return "", nil
	case right.Namespace != "":
		return fmt.Sprintf("the right to %s %s in namespace %s is missing", right.Verb, right.Resource, right.Namespace), nil
	case right.Resource == "clustercryptoprofiles":
		return fmt.Sprintf("the right to %s %s is missing", right.Verb, right.Resource), nil
	default:
		return fmt.Sprintf("the right to %s %s in all namespaces is missing", right.Verb, right.Resource), nil
	}
}

// rightsLast is how long an answer about a right counts. If the right changes meanwhile, the page
// may offer an action that the API server refuses, or withhold an allowed one. The API server
// always decides.
const rightsLast = 30 * time.Second

// rightsWait bounds how long a state of the fleet waits for answers about rights. Otherwise a
// hanging API server would stop the page, which would show an old state as current.
const rightsWait = 10 * time.Second

// rights remembers whether the user may patch profiles.
type rights struct {
	client kubernetes.Interface
	// wait bounds the questions of one state.
	wait time.Duration

	mu    sync.Mutex
	known map[downgrade.Source]answer
}

type answer struct {
	barred string
	asked  time.Time
}

// patch returns why the user can't patch a profile, or an empty text.
func (r *rights) patch(ctx context.Context, source downgrade.Source) string {
	r.mu.Lock()
	found, known := r.known[source]
	r.mu.Unlock()
	if known && time.Since(found.asked) < rightsLast {
		return found.barred
	}
	why, err := barred(ctx, r.client, authorizationv1.ResourceAttributes{
		Verb: "patch", Group: v1alpha1.GroupVersion.Group, Resource: source.Resource(), Namespace: source.Namespace, Name: source.Name,
	})
	if err != nil {
		why = "whether you have the right to patch it is not known: " + apierror.OneLine(apierror.Plain(err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[source] = answer{why, time.Now()}
	return why
}
