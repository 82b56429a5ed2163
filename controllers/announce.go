// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
)

// Limits of the API in bytes.
const (
	maxEventNote        = 1024
	maxConditionMessage = 32768
)

// Reasons and actions of events.
const (
	eventAccepted   = "Accepted"
	eventPropagated = "Propagated"
	eventRecovered  = "Recovered"
	eventWeakened   = "ProfileWeakened"

	actionRender     = "Render"
	actionDistribute = "Distribute"
)

// announcer tells in events what somebody should notice: on a profile, that a
// new version of it was accepted, refused or arrived; on the ConfigMap of a
// namespace, that brokers don't get its set or can't be asked. Each is told
// once, when it becomes so.
type announcer struct {
	recorder   events.EventRecorder
	client     client.Client
	propagator propagator

	mu sync.Mutex
	// told is the reason told last, by namespace.
	told map[string]string
}

// tell compares conditions of a profile before and after its status was written.
func (a *announcer) tell(object client.Object, before, after []metav1.Condition, took time.Duration) {
	c := meta.FindStatusCondition(after, v1alpha1.ConditionAccepted)
	b := meta.FindStatusCondition(before, c.Type)
	switch {
	case b != nil && b.Status == c.Status && b.Reason == c.Reason && b.ObservedGeneration == c.ObservedGeneration:
	case c.Status != metav1.ConditionTrue:
		a.event(object, corev1.EventTypeWarning, c.Reason, actionRender, c.Message)
	case b == nil || b.Status != c.Status || meta.FindStatusCondition(after, v1alpha1.ConditionPropagated).Reason == v1alpha1.ReasonNoPods:
		a.event(object, corev1.EventTypeNormal, eventAccepted, actionRender, fmt.Sprintf("Generation %d is accepted. %s", c.ObservedGeneration, c.Message))
	default: // the event comes once the change has arrived
	}
	a.tellWithheld(object, before, after)
	c = meta.FindStatusCondition(after, v1alpha1.ConditionPropagated)
	if c.Reason != v1alpha1.ReasonAllUpdated {
		return
	}
	if b = meta.FindStatusCondition(before, c.Type); b == nil || b.Status != c.Status || b.ObservedGeneration != c.ObservedGeneration {
		note := fmt.Sprintf("Generation %d: %s", c.ObservedGeneration, c.Message)
		if took > 0 {
			note = fmt.Sprintf("%s The last got it %.2f s after it was written.", note, took.Seconds())
		}
		a.event(object, corev1.EventTypeNormal, eventPropagated, actionDistribute, note)
	}
}

// announce tells on the namespace's ConfigMap what has become of its set.
func (a *announcer) announce(ctx context.Context, namespace string, s distribute.Summary) error {
	if !settled(s) || s.Digest == "" {
		return nil
	}
	c := a.propagator.propagated(s, true)
	problem := ""
	if c.Status != metav1.ConditionTrue {
		problem = c.Reason
	}
	a.mu.Lock()
	before := a.told[namespace]
	a.told[namespace] = problem
	a.mu.Unlock()
	if before == problem {
		return nil
	}
	set, err := get(ctx, a.client, client.ObjectKey{Namespace: namespace, Name: v1alpha1.ProfilesConfigMap})
	if err != nil || set == nil {
		return err
	}
	if problem == "" {
		a.event(set, corev1.EventTypeNormal, eventRecovered, actionDistribute, c.Message)
	} else {
		a.event(set, corev1.EventTypeWarning, problem, actionDistribute, c.Message)
	}
	return nil
}

// forget drops what is known of a namespace that is gone.
func (a *announcer) forget(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.told, namespace)
}

func (a *announcer) event(object client.Object, kind, reason, action, note string) {
	a.recorder.Eventf(object, nil, kind, reason, action, "%s", cut(note, maxEventNote))
}

// cut shortens a text to so many bytes, and shows that it did.
func cut(text string, most int) string {
	const mark = " …"
	if len(text) <= most {
		return text
	}
	end := most - len(mark)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
