// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package presence

import (
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

func TestAPodThatComesHasNoOtherPodJudged(t *testing.T) {
	const many = 40
	ns := namespace(t, nil)
	asked := annotated(contract.InjectAnnotation, "true")
	_, set := deployment(t, ns, "orders")
	for range many {
		pod(t, ns, set, asked)
	}
	var judged atomic.Int64
	registry := start(t, func(o *Options) {
		wanted := o.Wanted
		o.Wanted = func(pod *corev1.Pod, byDefault bool) (bool, error) {
			if pod.Namespace == ns {
				judged.Add(1)
			}
			return wanted(pod, byDefault)
		}
	})
	expectNumbers(t, registry, ns, many, 0)
	judged.Store(0)
	last := pod(t, ns, nil, asked)
	expectNumbers(t, registry, ns, many+1, 0)
	expectEvent(t, last, "BrokerMissing", "The pod is without a broker")
	if found := judged.Load(); found > 4 {
		t.Errorf("one pod came among %d, and pods were judged %d times, expected 4 at most", many, found)
	}
}
