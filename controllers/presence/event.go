// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Reasons and the action of events.
const (
	// eventMissing means that pods have no broker and should have one.
	eventMissing = "BrokerMissing"
	// eventOutdated means that pods have a broker of another version, or with other settings, than a new pod gets.
	eventOutdated = "BrokerOutdated"
	// eventWaiting means that pods wait for a first profile of their namespace and cannot start.
	eventWaiting = "BrokerWaiting"
	actionInject = "Inject"
	actionServe  = "Serve"
)

// event makes the events on an owner about its pods.
func (r *reconciler) event(owner corev1.ObjectReference, f *found) {
	switch {
	case f.refused > 0:
		r.recorder.Eventf(&owner, nil, corev1.EventTypeWarning, eventMissing, actionInject,
			"%s without a broker and should have one. A new pod like that is refused: "+refusalFormat+". %s",
			of(f.missing, f.pods), f.refusal, correction(owner))
	case f.missing > 0:
		r.recorder.Eventf(&owner, nil, corev1.EventTypeWarning, eventMissing, actionInject,
			"%s without a broker and should have one: created while the operator could not be called, or before the annotation or the namespace's label was there. %s",
			of(f.missing, f.pods), remedy(owner))
	}
	if f.outdated > 0 {
		r.recorder.Eventf(&owner, nil, corev1.EventTypeNormal, eventOutdated, actionInject,
			"%s with a broker of another version, or with other settings, than a new pod gets. It goes on working. %s",
			of(f.outdated, f.pods), remedy(owner))
	}
	if f.waiting > 0 {
		r.recorder.Eventf(&owner, nil, corev1.EventTypeWarning, eventWaiting, actionServe,
			"%[1]s waiting for a first profile and can't start: namespace %[2]s has no CryptoProfile and no ClusterCryptoProfile that is accepted. See kubectl get cprof,ccprof -n %[2]s",
			of(f.waiting, f.pods), owner.Namespace)
	}
}

// refusalFormat truncates a refusal, because it quotes annotations. The whole note of an event
// has at most 1024 bytes.
const refusalFormat = "%.200s"

// of returns a number of pods in words: "The pod is", "1 of 3 pods is", "2 of 3 pods are".
func of(n, all int) string {
	if all == 1 {
		return "The pod is"
	}
	return fmt.Sprintf("%d of %d pods %s", n, all, choose(n, "is", "are"))
}

func choose(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// restartable are the kinds that kubectl crypto-broker restart knows.
var restartable = map[string]string{"Deployment": "deployment", "StatefulSet": "statefulset", "DaemonSet": "daemonset"}

// correction returns what to do if a new pod would be refused.
func correction(owner corev1.ObjectReference) string {
	if owner.Kind == "Pod" {
		return "Correct the annotation and create it again."
	}
	return "Correct the annotation in its pod template: until then a restart makes no pods."
}

// remedy returns what to do for pods that need a new broker.
func remedy(owner corev1.ObjectReference) string {
	switch kind, known := restartable[owner.Kind]; {
	case known && owner.APIVersion == "apps/v1":
		return fmt.Sprintf("Restart it: kubectl crypto-broker restart %s/%s -n %s", kind, owner.Name, owner.Namespace)
	case owner.Kind == "CronJob":
		return "Its next job gets one."
	default:
		return "It has to be created again."
	}
}
