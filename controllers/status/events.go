// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/event"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// Reasons and actions of events.
const (
	// eventAccepted means that a profile is accepted in its new generation.
	eventAccepted = "Accepted"
	// eventPropagated means that all brokers serve the new generation of a profile.
	eventPropagated = "Propagated"
	// eventRecovered means that the set of a namespace reaches its brokers again.
	eventRecovered = "Recovered"

	actionRender     = "Render"
	actionDistribute = "Distribute"
)

// reporter makes events. An event on a profile says that a new version of it was accepted,
// refused or propagated. There is none if only another profile of the set changed. An event on
// the ConfigMap of a namespace says that brokers do not get its set or cannot be asked. Each is
// reported once, when it begins.
type reporter struct {
	recorder   events.EventRecorder
	client     client.Client
	namespaces *state.Store
	conditions conditions
}

// reportProfile makes the events of a profile, by its conditions before and after its
// status was written. took is how long its set took to reach the last broker.
func (r *reporter) reportProfile(m *memory, object client.Object, before, after []metav1.Condition, took time.Duration) {
	c := meta.FindStatusCondition(after, v1alpha1.ConditionAccepted)
	b := meta.FindStatusCondition(before, c.Type)
	switch {
	case b != nil && b.Status == c.Status && b.Reason == c.Reason && b.ObservedGeneration == c.ObservedGeneration:
	case c.Status != metav1.ConditionTrue:
		event.Record(r.recorder, object, corev1.EventTypeWarning, c.Reason, actionRender, c.Message)
	case b == nil || b.Status != c.Status || meta.FindStatusCondition(after, v1alpha1.ConditionPropagated).Reason == v1alpha1.ReasonNoPods:
		event.Record(r.recorder, object, corev1.EventTypeNormal, eventAccepted, actionRender, fmt.Sprintf("Generation %d is accepted. %s", c.ObservedGeneration, c.Message))
	default: // the event comes when the change has reached the brokers
	}
	r.reportWithheld(object, before, after)
	c = meta.FindStatusCondition(after, v1alpha1.ConditionPropagated)
	isNew := m.becamePropagated(client.ObjectKeyFromObject(object), meta.FindStatusCondition(before, c.Type), c)
	if isNew && c.Reason == v1alpha1.ReasonAllUpdated {
		note := fmt.Sprintf("Generation %d: %s", c.ObservedGeneration, c.Message)
		if took > 0 {
			note = fmt.Sprintf("%s The last got it %.2f s after it was written.", note, took.Seconds())
		}
		event.Record(r.recorder, object, corev1.EventTypeNormal, eventPropagated, actionDistribute, note)
	}
}

// reportSet makes an event on the namespace's ConfigMap when a problem of distributing its set
// begins, changes or ends.
func (r *reporter) reportSet(ctx context.Context, namespace string, s distribute.Summary) error {
	if !settled(s) || s.Digest == "" {
		return nil
	}
	c := r.conditions.propagated(s, render.Verdict{Accepted: true}, nil)
	problem := ""
	if c.Status != metav1.ConditionTrue {
		problem = c.Reason
	}
	if known, is := r.namespaces.Get(namespace); !is || known.ProblemReported == problem {
		return nil
	}
	var set corev1.ConfigMap
	key := client.ObjectKey{Namespace: namespace, Name: v1alpha1.ProfilesConfigMap}
	if err := r.client.Get(ctx, key, &set); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	r.namespaces.UpdateKnown(namespace, func(known *state.Namespace) { known.ProblemReported = problem })
	if problem == "" {
		event.Record(r.recorder, &set, corev1.EventTypeNormal, eventRecovered, actionDistribute, c.Message)
	} else {
		event.Record(r.recorder, &set, corev1.EventTypeWarning, problem, actionDistribute, c.Message)
	}
	return nil
}
