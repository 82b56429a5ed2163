// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// manifest has the fields of a binding and of a webhook configuration that the test reads.
type manifest struct {
	metav1.TypeMeta `json:",inline"`
	Spec            struct {
		PolicyName        string
		ValidationActions []admissionregistrationv1.ValidationAction
	}
	Webhooks []struct {
		Name          string
		FailurePolicy admissionregistrationv1.FailurePolicyType
	}
}

// manifests reads the manifests of a directory of the repository.
func manifests(t *testing.T, directory string) (all []manifest) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../../..", directory, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found no manifests in %s: %v", directory, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
			var m manifest
			if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all = append(all, m)
		}
	}
	return all
}

func TestTheCheckKnowsThePoliciesThatAreInstalled(t *testing.T) {
	found := map[string]admissionregistrationv1.ValidationAction{}
	for _, m := range manifests(t, "config/policies") {
		if m.Kind == "ValidatingAdmissionPolicyBinding" {
			found[strings.TrimPrefix(m.Spec.PolicyName, "crypto-broker-operator-")] = m.Spec.ValidationActions[0]
		}
	}
	if diff := cmp.Diff(InstalledPolicies, found); diff != "" {
		t.Errorf("config/policies has other bindings (+) than the check expects (-):\n%s", diff)
	}
}

func TestTheCheckKnowsTheWebhooksThatAreInstalled(t *testing.T) {
	found := map[string]admissionregistrationv1.FailurePolicyType{}
	for _, m := range manifests(t, "config/webhook") {
		for _, w := range m.Webhooks {
			found[strings.TrimSuffix(w.Name, ".cryptobroker.io")] = w.FailurePolicy
		}
	}
	if diff := cmp.Diff(installedWebhooks, found); diff != "" {
		t.Errorf("config/webhook has other webhooks (+) than the check expects (-):\n%s", diff)
	}
}
