// SPDX-License-Identifier: Apache-2.0

package providersource

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

const (
	// firstPause and maxPause are the first and the longest pause before a follower reads a
	// Secret again that it could not read or watch. Each pause is a random part of it, from a
	// tenth to the whole.
	firstPause = time.Second
	maxPause   = 2 * time.Minute
	// watchSeconds is the maximum duration of one request to watch. Some take half of it.
	watchSeconds = 20 * 60
)

// secret is the state of a Secret.
type secret struct {
	credentials providers.Credentials
	// version is the resource version of the Secret.
	version string
	// problem is a sentence without a full stop if the Secret has no credentials for the
	// gateway, and reason is its word in package providerreport.
	problem, reason string
}

// follower follows one Secret, by the rights to get and watch it by its name.
type follower struct {
	secrets         corev1client.SecretInterface
	namespace, name string
}

// run calls changed with each new state, until ctx ends. While the API server does not answer,
// the last state remains.
func (f *follower) run(ctx context.Context, changed func(*secret)) {
	pause := firstPause
	for known := false; ctx.Err() == nil; {
		found, err := f.secrets.Get(ctx, f.name, metav1.GetOptions{})
		version := ""
		switch {
		case err == nil:
			version, known = found.ResourceVersion, true
			changed(credentialsOf(found))
		case apierrors.IsNotFound(err):
			known = true
			changed(f.missing())
		case apierrors.IsForbidden(err):
			known = true
			changed(&secret{
				problem: fmt.Sprintf("the key gateway may not read the Secret %q in namespace %q: its account needs the verbs get and watch for this Secret", f.name, f.namespace),
				reason:  providerreport.SecretForbidden,
			})
		case !known && ctx.Err() == nil:
			changed(&secret{problem: fmt.Sprintf("the Secret %q in namespace %q cannot be read now", f.name, f.namespace), reason: providerreport.SecretUnreadable})
		}
		if (err == nil || apierrors.IsNotFound(err)) && f.watch(ctx, version, changed) {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/10 + rand.N(pause)*9/10):
		}
		pause = min(2*pause, maxPause)
	}
}

// missing returns the state of a Secret that does not exist.
func (f *follower) missing() *secret {
	return &secret{problem: fmt.Sprintf("there is no Secret %q in namespace %q", f.name, f.namespace), reason: providerreport.SecretNotFound}
}

// watch calls changed for each change after a version. With an empty version, it first calls
// changed with the current state. It reports whether it could watch.
func (f *follower) watch(ctx context.Context, version string, changed func(*secret)) bool {
	seconds := watchSeconds/2 + rand.Int64N(watchSeconds/2)
	changes, err := f.secrets.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, f.name).String(), ResourceVersion: version, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return false
	}
	defer changes.Stop()
	for event := range changes.ResultChan() {
		found, ok := event.Object.(*corev1.Secret)
		switch {
		case !ok:
			return false // an error, such as a version that is too old
		case event.Type == watch.Deleted:
			changed(f.missing())
		default:
			changed(credentialsOf(found))
		}
	}
	return true
}

// credentialsOf returns the entries of a Secret that are credentials.
func credentialsOf(found *corev1.Secret) *secret {
	credentials := providers.Credentials{}
	for name, value := range found.Data {
		if providers.IsCredential(name) {
			credentials[name] = value
		}
	}
	return &secret{credentials: credentials, version: found.ResourceVersion}
}
