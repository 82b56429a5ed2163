// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

func TestAChangeThatTakesSomethingFromCallsIsWarnedOf(t *testing.T) {
	served := func(pods int32) v1alpha1.ProfileStatus {
		return v1alpha1.ProfileStatus{Pods: pods, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonValid}}}
	}
	const (
		all = `{api: {hashData: {hashAlg: sha-256}, encryptData: {encryptAlg: aes-gcm, keySize: 256}, signData: {signAlg: rsa, hashAlg: sha-256}}}`
		end = "; kubectl crypto-broker what-if -f FILE -n shop shows who makes such calls"
	)
	for sentence, test := range map[string]struct {
		pods          int32
		before, after string
		want          string
	}{
		"another algorithm": {12, `{api: {hashData: {hashAlg: sha-256}}}`, `{api: {hashData: {hashAlg: sha-512}}}`,
			`12 running pods have brokers that serve the profile "orders", and calls may break: HashData: sha-512 instead of sha-256` + end},
		"for one pod": {1, `{api: {hashData: {hashAlg: sha-256}}}`, `{api: {hashData: {hashAlg: sha-512}}}`,
			`1 running pod has a broker that serves the profile "orders", and calls may break: HashData: sha-512 instead of sha-256` + end},
		"another name": {2, `{api: {hashData: {hashAlg: sha-256}}}`, `{profileName: Other, api: {hashData: {hashAlg: sha-256}}}`,
			`2 running pods have brokers that serve the profile "orders", and calls may break: its name is then "Other"` + end},
		"another name, which no rollout is for": {2, `{api: {hashData: {hashAlg: sha-256}}}`, `{profileName: Other, api: {hashData: {hashAlg: sha-256}}, rollout: {steps: [{setWeight: 10}]}}`,
			`2 running pods have brokers that serve the profile "orders", and calls may break: its name is then "Other", in all pods at once` + end},
		"more than there is room for": {2, all, `{api: {hashData: {hashAlg: sha-512}}}`,
			`2 running pods have brokers that serve the profile "orders", and calls may break: HashData: sha-512 instead of sha-256; EncryptData is not offered; and 3 more` + end},
		"a change that offers more":           {12, `{api: {hashData: {hashAlg: sha-256}}}`, all, ""},
		"a profile that no broker serves":     {0, `{api: {hashData: {hashAlg: sha-256}}}`, `{api: {hashData: {hashAlg: sha-512}}}`, ""},
		"a profile that was not valid before": {12, `{api: {hashData: {hashAlg: md5}}}`, `{api: {hashData: {hashAlg: sha-512}}}`, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			before, after := fixture.ProfileNamed("orders"), fixture.ProfileNamed("orders")
			before.Spec, after.Spec, before.Status = v1alpha1.ProfileSpec{}, v1alpha1.ProfileSpec{}, served(test.pods)
			for text, spec := range map[string]*v1alpha1.ProfileSpec{test.before: &before.Spec, test.after: &after.Spec} {
				if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
					t.Fatal(err)
				}
			}
			namespaced, _ := validatorsWith(t, apiServerWith(t, fixture.Namespace("shop", nil)))
			response := namespaced.Handle(t.Context(), change(t, before, after))
			if found := strings.Join(response.Warnings, "\n"); !response.Allowed || found != test.want || len(found) > maxWarning {
				t.Errorf("allowed %t, warned in %d bytes %q\nexpected %q", response.Allowed, len(found), found, test.want)
			}
		})
	}
}

func TestTheWarningAboutACallOfTheClusterNamesNoNamespace(t *testing.T) {
	before, after := fixture.ClusterProfileNamed("orders"), fixture.ClusterProfileNamed("orders")
	before.Status.UpdatedPods = 3
	before.Spec.API = v1alpha1.Operations{HashData: &v1alpha1.HashData{HashAlg: "sha-256"}}
	after.Spec.API = v1alpha1.Operations{HashData: &v1alpha1.HashData{HashAlg: "sha-512"}}
	_, cluster := validatorsWith(t, apiServerWith(t, fixture.Namespace("shop", nil)))
	response := cluster.Handle(t.Context(), change(t, before, after))
	if found := strings.Join(response.Warnings, "\n"); !strings.HasSuffix(found, "sha-512 instead of sha-256; kubectl crypto-broker what-if -f FILE shows who makes such calls") {
		t.Errorf("warned %q", found)
	}
}
