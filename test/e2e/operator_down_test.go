// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// replicas is the chart's default.
const replicas = workload.Replicas

// stopOperator scales the operator to zero, and scales it up again at the end of the test if startOperator has not done so before.
func stopOperator(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := shared.load.ScaleOperator(ctx, replicas); err != nil {
			t.Errorf("bringing the operator back: %v", err)
		}
	})
	must(t, shared.load.ScaleOperator(t.Context(), 0))
}

func startOperator(t testing.TB) {
	t.Helper()
	must(t, shared.load.ScaleOperator(t.Context(), replicas))
}

func TestWithoutTheOperator(t *testing.T) {
	namespace, labelled := newNamespace(t, nil), newNamespace(t, map[string]string{contract.InjectionLabel: contract.InjectionEnabled})
	deleted := newNamespace(t, nil)
	createProfile(t, namespace, "sha3-512")
	createProfile(t, deleted, "sha3-512")
	profilesConfigMap(t, deleted)
	pod := createPod(t, appPod(namespace, inject("true"), nil))
	awaitCalls(t, pod, statsPort, nil, 10)
	stopOperator(t)
	for sentence, annotations := range map[string]map[string]string{
		"a pod without annotations is created":          nil,
		"a pod with an empty annotation map is created": {},
		"a pod with other annotations is created":       {"example.org/team": "payments", "cryptobroker.io/other": "true"},
		"a pod that declines is created":                inject("false"),
	} {
		t.Run(sentence, func(t *testing.T) {
			pod := appPod(namespace, annotations, nil)
			must(t, shared.client.Create(t.Context(), pod))
			if hasBroker(pod) {
				t.Error("it got a broker")
			}
		})
	}
	for _, value := range []string{"true", "True", "yes"} {
		t.Run("a pod with the annotation "+value+" is refused", func(t *testing.T) {
			expectRefused(t, shared.client.Create(t.Context(), appPod(namespace, inject(value), nil)),
				"annotated.inject.cryptobroker.io")
		})
	}
	t.Run("in a labelled namespace a pod that does not decline is refused", func(t *testing.T) {
		expectRefused(t, shared.client.Create(t.Context(), appPod(labelled, nil, nil)), "labelled.inject.cryptobroker.io")
		must(t, shared.client.Create(t.Context(), appPod(labelled, inject("false"), nil)))
	})
	t.Run("a namespace is deleted", func(t *testing.T) { expectDeleted(t, deleted) })
	t.Run("pods serve on", func(t *testing.T) {
		expectNoFailure(t, pod, awaitCalls(t, pod, statsPort, mustStats(t, pod), 50))
	})
}

// expectDeleted deletes a namespace without pods. A namespace whose objects cannot be deleted stays for ever.
func expectDeleted(t *testing.T, namespace string) {
	t.Helper()
	if output, err := kubectl(t, "", "delete", "namespace", namespace, "--timeout="+patience.String()); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}
