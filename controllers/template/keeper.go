// SPDX-License-Identifier: Apache-2.0

// Package template keeps the InjectionTemplate, from which policies in the API
// server put brokers into pods where the chart was installed so.
package template

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// The rights that this needs are no markers here: the chart grants them only
// where it injects by policy. An apply that creates is authorized with the
// object's name, so that create and patch are limited to that one.

const (
	// Pause is the time until what somebody else changed is put back.
	Pause = 30 * time.Second
	// failurePause is the time until what failed is tried again.
	failurePause = time.Second
	// fieldManager owns the fields of the template.
	fieldManager = v1alpha1.FieldManager + "-template"
)

// Keeper makes the InjectionTemplate what it should be: at its start, when it is
// told of a change, and now and then.
type Keeper struct {
	client  client.Client
	name    string
	render  func(context.Context) (v1alpha1.InjectionTemplateSpec, error)
	changed chan struct{}
	pause   time.Duration
}

// New is a keeper of the InjectionTemplate with a name. render says what it has
// to be, each time anew. It is a runnable for a manager, and runs on the leader.
func New(c client.Client, name string, render func(context.Context) (v1alpha1.InjectionTemplateSpec, error)) *Keeper {
	return &Keeper{client: c, name: name, render: render, changed: make(chan struct{}, 1), pause: Pause}
}

// Changed has the template rendered again at once. It never blocks.
func (k *Keeper) Changed() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// NeedLeaderElection is true: one writer is enough.
func (k *Keeper) NeedLeaderElection() bool { return true }

// Start keeps the template until the context ends.
func (k *Keeper) Start(ctx context.Context) error {
	version := ""
	failed := false
	for {
		pause := k.pause
		found, err := k.apply(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			if !failed {
				log.FromContext(ctx).Error(err, "the template of injected brokers can't be brought up to date; pods get brokers of the one before, or are refused where there is none")
			}
			failed, pause = true, failurePause
		case err == nil && found != version:
			log.FromContext(ctx).Info("the template of injected brokers is up to date", "injectionTemplate", k.name)
			fallthrough
		case err == nil:
			version, failed = found, false
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.changed:
		case <-time.After(pause):
		}
	}
}

// apply returns the version of the object that is in place. Where nothing has to
// be changed the API server writes nothing.
func (k *Keeper) apply(ctx context.Context) (version string, err error) {
	spec, err := k.render(ctx)
	if err != nil {
		return "", err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.InjectionTemplate{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "InjectionTemplate"},
		ObjectMeta: metav1.ObjectMeta{Name: k.name, Labels: map[string]string{"app.kubernetes.io/managed-by": v1alpha1.FieldManager, "app.kubernetes.io/part-of": "crypto-broker"}},
		Spec:       spec,
	})
	if err != nil {
		return "", fmt.Errorf("the template %q: %w", k.name, err)
	}
	object := &unstructured.Unstructured{Object: fields}
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	if err := k.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
		return "", fmt.Errorf("applying the InjectionTemplate %q: %w", k.name, err)
	}
	return object.GetResourceVersion(), nil
}
