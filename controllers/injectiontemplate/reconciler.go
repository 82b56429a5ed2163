// SPDX-License-Identifier: Apache-2.0

// Package injectiontemplate reconciles the InjectionTemplate. In an installation that injects by
// policy, policies in the API server put brokers into pods from this object.
package injectiontemplate

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// There are no RBAC markers for the rights that this needs: the chart grants them only
// where it injects by policy. An apply that creates is authorized with the object's
// name, and a watch of one name with that name, so all verbs are limited to that one.

const (
	// Pause is the time until a change by somebody else is reverted if the template cannot be
	// watched.
	Pause = 30 * time.Second
	// leastPause is the shortest time between two reverts of changes by somebody else.
	leastPause = time.Second
	// failurePause is the time until a failed step is tried again.
	failurePause = time.Second
	// fieldManager owns the fields of the template.
	fieldManager = v1alpha1.FieldManager + "-template"
)

// Reconciler writes the InjectionTemplate at its start, after each call of Changed, and after a
// change by somebody else.
type Reconciler struct {
	client  client.WithWatch
	name    string
	render  func(context.Context) (v1alpha1.InjectionTemplateSpec, error)
	changed chan struct{}
	pause   time.Duration
}

// New returns a reconciler of the InjectionTemplate with a name. It calls render each time to get
// the template. It is a runnable for a manager, and runs on the leader.
func New(c client.WithWatch, name string, render func(context.Context) (v1alpha1.InjectionTemplateSpec, error)) *Reconciler {
	return &Reconciler{client: c, name: name, render: render, changed: make(chan struct{}, 1), pause: Pause}
}

// Changed makes the reconciler render the template again at once. It never blocks.
func (r *Reconciler) Changed() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// NeedLeaderElection returns true, because one writer is enough.
func (r *Reconciler) NeedLeaderElection() bool { return true }

// Start reconciles the template until the context ends.
func (r *Reconciler) Start(ctx context.Context) error {
	version := ""
	failed := false
	for ctx.Err() == nil {
		pause := r.pause
		found, err := r.apply(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			if !failed {
				log.FromContext(ctx).Error(err, "the template of injected brokers can't be written; new pods get brokers of the template before, or are refused where there is none")
			}
			failed, pause = true, failurePause
		case err == nil && found != version:
			log.FromContext(ctx).Info("the template of injected brokers is up to date", "injectionTemplate", r.name)
			fallthrough
		case err == nil:
			version, failed = found, false
		}
		r.wait(ctx, found, pause)
	}
	return nil
}

// wait returns when the template may have to be written again. It watches the template, and
// ignores the event about the applied version. If version is empty, the last write failed, and it
// waits for the pause. The API server ends a watch after some minutes, which counts as a change.
func (r *Reconciler) wait(ctx context.Context, version string, pause time.Duration) {
	var events <-chan watch.Event
	if version != "" {
		watching, err := r.client.Watch(ctx, &v1alpha1.InjectionTemplateList{}, client.MatchingFields{"metadata.name": r.name})
		if err == nil {
			defer watching.Stop()
			events, pause = watching.ResultChan(), leastPause
		}
	}
	over := time.After(pause)
	for {
		if events == nil {
			select {
			case <-ctx.Done():
			case <-r.changed:
			case <-over:
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
			return
		case event := <-events:
			object, is := event.Object.(*v1alpha1.InjectionTemplate)
			if !is || event.Type == watch.Deleted || object.ResourceVersion != version {
				events = nil
			}
		}
	}
}

// apply applies the template and returns its resource version. If nothing has changed, the API
// server writes nothing.
func (r *Reconciler) apply(ctx context.Context) (version string, err error) {
	spec, err := r.render(ctx)
	if err != nil {
		return "", err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.InjectionTemplate{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "InjectionTemplate"},
		ObjectMeta: metav1.ObjectMeta{Name: r.name, Labels: map[string]string{"app.kubernetes.io/managed-by": v1alpha1.FieldManager, "app.kubernetes.io/part-of": "crypto-broker"}},
		Spec:       spec,
	})
	if err != nil {
		return "", fmt.Errorf("the template %q: %w", r.name, err)
	}
	object := &unstructured.Unstructured{Object: fields}
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	if err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
		return "", fmt.Errorf("apply the InjectionTemplate %q: %w", r.name, err)
	}
	return object.GetResourceVersion(), nil
}
