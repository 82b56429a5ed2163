// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// testdata are the golden pods and the template that they are made with.
const testdata = "injection/testdata"

// testTemplate is an operator's with default values.
func testTemplate() template.Template {
	var template template.Template
	document, err := os.ReadFile(testdata + "/template.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(document, &template)
	}
	if err != nil {
		panic(err)
	}
	return template
}

// otherTemplate is the template of another version of the operator: every field of the broker's container differs from testTemplate.
func otherTemplate() template.Template {
	return template.Template{
		Image:       "localhost/crypto-broker/broker:0.0.9",
		SocketGroup: 60471,
		StatusPort:  9471,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("48Mi")},
		},
		RequireFIPS: true,
		Traces:      template.Traces{Endpoint: "http://former-collector:4317"},
		Version:     "0.0.9",
	}
}

// admitted returns the pod that the API server makes of a pod and of Inject's answer.
func admitted(t *testing.T, pod *corev1.Pod, profiles []byte, template template.Template) *corev1.Pod {
	t.Helper()
	injected, _, err := injection.Inject(pod, "shop", profiles, template)
	if err != nil {
		t.Fatal(err)
	}
	result := &corev1.Pod{}
	if err := json.Unmarshal(fixture.Patched(t, fixture.JSON(t, pod), pod, injected), result); err != nil {
		t.Fatal(err)
	}
	return result
}

// injectedPodWith returns the injected form of fixture.PodWith(), with changes.
func injectedPodWith(t *testing.T, changes ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod, _, err := injection.Inject(fixture.PodWith(), "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

const reserved = "the name is reserved for the broker that the operator adds: rename yours; or, in a copy of an injected pod, " +
	"keep the annotations (kubectl debug --keep-annotations)"
