// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/app/stats"
)

const (
	statsPort  = 8080
	brokerPort = 9470
)

// podGet sends a GET request to a pod's port through the API server.
func (d *demo) podGet(ctx context.Context, pod string, port int, path string, answer any) error {
	data, err := d.clientset.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").
		Name(pod + ":" + strconv.Itoa(port)).SubResource("proxy").Suffix(path).Timeout(5 * time.Second).DoRaw(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, answer)
}

// awaitStats waits until the application's counts meet a condition. The application records the times itself, so it does
// not matter how often the demo asks.
func (d *demo) awaitStats(ctx context.Context, pod, what string, within time.Duration, enough func(*stats.Stats) bool) (*stats.Stats, error) {
	var found *stats.Stats
	return found, poll(ctx, what, within, func() error {
		found = &stats.Stats{}
		if err := d.podGet(ctx, pod, statsPort, "stats", found); err != nil {
			return err
		}
		if !enough(found) {
			return fmt.Errorf("it says %+v", *found)
		}
		return nil
	})
}

// servingSince returns the time at which the pod's broker began to serve its set, by the broker's clock.
func (d *demo) servingSince(ctx context.Context, pod string) (time.Time, error) {
	var answer struct{ Since time.Time }
	err := d.podGet(ctx, pod, brokerPort, "profiles", &answer)
	return answer.Since, err
}

// awaitConfirmed waits until the operator has asked the broker and says so on the profile, and returns the application's
// counts after that.
func (d *demo) awaitConfirmed(ctx context.Context, pod string) (*stats.Stats, error) {
	err := poll(ctx, "the profile's status says that every pod serves it", time.Minute, func() error {
		var profile v1alpha1.CryptoProfile
		if err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &profile); err != nil {
			return err
		}
		propagated := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionPropagated)
		if propagated == nil || propagated.ObservedGeneration != profile.Generation || propagated.Status != "True" {
			return fmt.Errorf("it is %+v", profile.Status)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var final stats.Stats
	return &final, d.podGet(ctx, pod, statsPort, "stats", &final)
}

// poll repeats a check until it succeeds.
func poll(ctx context.Context, what string, within time.Duration, check func() error) error {
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %s in vain until %s: %w", within, what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("interrupted while waiting until %s", what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
