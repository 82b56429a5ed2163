// SPDX-License-Identifier: Apache-2.0

package presence

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// state is whether a pod has the broker that it should have.
type state int

const (
	fine     state = iota // has its broker, or should have none
	missing               // should have a broker and has none
	refused               // is missing its broker, and a new pod like it would be refused
	outdated              // has another broker than a new pod would get
	waiting               // has its broker, which runs and has no set of profiles yet
)

// judge returns the state of a pod in a namespace that is not excluded. byDefault is
// whether its namespace asks for brokers.
func (o Options) judge(pod *corev1.Pod, byDefault bool) state {
	switch {
	case pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return fine
	case injected.Broker(pod) != nil:
		if o.Outdated != nil && o.Outdated(pod) {
			return outdated
		}
		if _, is := runsUnstarted(pod); is {
			return waiting
		}
		return fine
	}
	switch wanted, err := o.Wanted(pod, byDefault); {
	case err != nil:
		return refused
	case wanted:
		return missing
	default:
		return fine
	}
}

// excluded reports whether pods of a namespace never get a broker.
func (o Options) excluded(namespace string) bool {
	return contract.IsExcluded(namespace, o.Excluded...)
}
