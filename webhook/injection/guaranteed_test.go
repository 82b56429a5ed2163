// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

func TestTheBrokerOfAGuaranteedPodRequestsWhatItIsLimitedTo(t *testing.T) {
	guaranteed := func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources = fixture.Sized("1", "1Gi", "1", "1Gi") }
	limited := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Limits = fixture.Sized("1", "1Gi", "1", "1Gi").Limits
	}
	for sentence, test := range map[string]struct {
		pod  *corev1.Pod
		want corev1.ResourceRequirements
		warn string
	}{
		"the template's limit of memory, and CPU of its own": {pod: fixture.PodWith(guaranteed), want: fixture.Sized("250m", "128Mi", "250m", "128Mi")},
		"the same where the app has limits alone":            {pod: fixture.PodWith(limited), want: fixture.Sized("250m", "128Mi", "250m", "128Mi")},
		"a limit that the pod asks for":                      {pod: fixture.PodWith(guaranteed, fixture.Annotated("cpu-limit", "1"), fixture.Annotated("memory-limit", "64Mi")), want: fixture.Sized("1", "64Mi", "1", "64Mi")},
		"a request that the pod asks for":                    {pod: fixture.PodWith(guaranteed, fixture.Annotated("cpu-request", "100m"), fixture.Annotated("memory-request", "48Mi")), want: fixture.Sized("100m", "48Mi", "100m", "48Mi")},
		"equal ones that the pod asks for":                   {pod: fixture.PodWith(guaranteed, fixture.Annotated("cpu-request", "100m"), fixture.Annotated("cpu-limit", "100m")), want: fixture.Sized("100m", "128Mi", "100m", "128Mi")},
		"a request above the template's limit, for both":     {pod: fixture.PodWith(guaranteed, fixture.Annotated("memory-request", "1Gi")), want: fixture.Sized("250m", "1Gi", "250m", "1Gi")},
		"a limit below the template's request, for both":     {pod: fixture.PodWith(guaranteed, fixture.Annotated("cpu-limit", "5m")), want: fixture.Sized("5m", "128Mi", "5m", "128Mi")},
		"the same where the pod has an empty field for all":  {pod: fixture.PodWith(guaranteed, func(pod *corev1.Pod) { pod.Spec.Resources = &corev1.ResourceRequirements{} }), want: fixture.Sized("250m", "128Mi", "250m", "128Mi")},
		"different ones that the pod asks for, with a warning": {
			pod: fixture.PodWith(guaranteed, fixture.Annotated("cpu-request", "100m"), fixture.Annotated("cpu-limit", "1")), want: fixture.Sized("100m", "128Mi", "1", "128Mi"),
			warn: "metadata.annotations[cryptobroker.io/cpu-request]: found 100m and the limit 1, so that the pod is Burstable",
		},
		"what the template has, beside a container without limits": {
			pod:  fixture.PodWith(guaranteed, fixture.Second(corev1.Container{Name: "side"})),
			want: corev1.ResourceRequirements{Requests: fixture.Sized("10m", "32Mi", "1", "1Gi").Requests, Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")}},
		},
		"what the template has, beside an init container that requests less": {
			pod: fixture.PodWith(guaranteed, func(pod *corev1.Pod) {
				pod.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: fixture.Sized("1", "1Gi", "2", "1Gi")}}
			}),
			want: corev1.ResourceRequirements{Requests: fixture.Sized("10m", "32Mi", "1", "1Gi").Requests, Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			pod, warnings, err := Inject(test.pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			found := pod.Spec.InitContainers[0].Resources
			for name, lists := range map[string][2]corev1.ResourceList{"requests": {found.Requests, test.want.Requests}, "limits": {found.Limits, test.want.Limits}} {
				if len(lists[0]) != len(lists[1]) || !lists[0].Cpu().Equal(*lists[1].Cpu()) || !lists[0].Memory().Equal(*lists[1].Memory()) {
					t.Errorf("found the %s %v, expected %v", name, lists[0], lists[1])
				}
			}
			if all := strings.Join(warnings, "\n"); !strings.Contains(all, test.warn) || test.warn == "" && all != "" {
				t.Errorf("found the warnings %q, expected %q", all, test.warn)
			}
		})
	}
}
