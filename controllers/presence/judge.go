// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// state says whether a pod has the broker that it should have.
type state int

const (
	fine     state = iota // has its broker, or should have none
	unasked               // has no broker, and should have one if its namespace asks for brokers
	missing               // asked for a broker and has none
	refused               // is missing its broker, and a new pod like it would be refused
	outdated              // has another broker than a new pod would get
	waiting               // has its broker, which runs and has no set of profiles yet

	states // the number of states
)

// observation is the observed state of a pod.
type observation struct {
	state state
	// refusal says why a new pod like one in the state refused would be refused.
	refusal string
	// since is the time at which the broker of a pod in the state waiting began to run.
	since time.Time
}

// judge returns the state of a pod in a namespace that is not excluded.
func (o Options) judge(pod *corev1.Pod) observation {
	switch {
	case pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return observation{state: fine}
	case injected.Broker(pod) != nil:
		if o.Outdated != nil && o.Outdated(pod) {
			return observation{state: outdated}
		}
		if since, is := runsUnstarted(pod); is {
			return observation{state: waiting, since: since}
		}
		return observation{state: fine}
	}
	switch asked, err := o.Wanted(pod, false); {
	case err != nil:
		return observation{state: refused, refusal: err.Error()}
	case asked:
		return observation{state: missing}
	}
	if byDefault, err := o.Wanted(pod, true); byDefault && err == nil {
		return observation{state: unasked}
	}
	return observation{state: fine}
}

// excluded reports whether pods of a namespace never get a broker.
func (o Options) excluded(namespace string) bool {
	return contract.IsExcluded(namespace, o.Excluded...)
}
