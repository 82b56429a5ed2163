// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// TestPoliciesInRegoAreCheckedBesideTheOperator installs the container that checks policies in Rego, and applies policies.
func TestPoliciesInRegoAreCheckedBesideTheOperator(t *testing.T) {
	restoreChart(t)
	_, err := shared.helm.Install(t.Context(), environment.Chart(shared.Repository), &shared.Images,
		"keyAccess.rego=true", "keyGateway.image.registry="+shared.Images.Registry, "keyGateway.image.tag="+shared.Images.Tag)
	must(t, err)
	for module, want := range map[string]string{
		"allow if input.caller.bound":              "",
		"allow if {\n  input.caller.isuer == 1\n}": "spec.rego: Invalid value: line 3, column 3 of the module: undefined ref: input.caller.isuer",
		"allow if http.send({\"url\": input.now})": "undefined function http.send",
		"deny if true": "found no rule allow, without which nothing is permitted",
	} {
		policy := &v1alpha1.KeyAccessPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "in-rego"}, Spec: v1alpha1.KeyAccessPolicySpec{Rego: "package keyaccess\n" + module},
		}
		if err := shared.client.Create(t.Context(), policy, client.DryRunAll); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: found %v, expected %q", module, err, want)
		}
	}
	expectNoToken(t)
	_, err = shared.helm.Install(t.Context(), environment.Chart(shared.Repository), &shared.Images)
	must(t, err)
}

// expectNoToken expects that the container has an empty folder instead of the operator's token.
func expectNoToken(t *testing.T) {
	t.Helper()
	var pods corev1.PodList
	must(t, shared.client.List(t.Context(), &pods, client.InNamespace(environment.Namespace), client.MatchingLabels{"app.kubernetes.io/name": environment.Release}))
	checked := 0
	for _, pod := range pods.Items {
		for _, container := range pod.Spec.Containers {
			for _, mount := range container.VolumeMounts {
				if container.Name == "rego-check" && mount.MountPath == "/var/run/secrets/kubernetes.io/serviceaccount" {
					checked++
					if mount.Name != "no-token" {
						t.Errorf("found the volume %q in the place of the operator's token", mount.Name)
					}
				}
			}
		}
	}
	if checked == 0 {
		t.Errorf("found no container rego-check in %d pods", len(pods.Items))
	}
}
