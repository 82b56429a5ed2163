// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

func TestABrokerIsOutdatedWhenANewPodWouldGetAnother(t *testing.T) {
	tests := map[string]struct {
		pod      func(*corev1.Pod)
		template func(*Template)
		outdated bool
	}{
		"of the same template": {},
		"of another version of the operator that makes the same": {template: func(t *Template) { t.Version = "9.9.9" }},
		"another image":                   {template: func(t *Template) { t.Image = "broker:next" }, outdated: true},
		"another setting":                 {template: func(t *Template) { t.StatusPort = 9999 }, outdated: true},
		"a stamp that somebody took away": {pod: func(p *corev1.Pod) { delete(p.Annotations, contract.InjectedAnnotation) }},
		"an image that somebody put in":   {pod: func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "other" }, outdated: true},
		"an image that the pod asked for": {pod: func(p *corev1.Pod) {
			p.Annotations[contract.ImageAnnotation] = "other"
			p.Spec.InitContainers[0].Image = "other"
		}},
		"without the key gateway, which is not for each namespace": {template: func(t *Template) { t.KeyGateway = "gateway:8443" }},
		"no broker": {pod: func(p *corev1.Pod) { p.Spec.InitContainers = nil }},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			pod, _, err := Inject(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "app", Annotations: map[string]string{contract.InjectAnnotation: "true"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
			}, "shop", nil, testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			template := testTemplate()
			if test.pod != nil {
				test.pod(pod)
			}
			if test.template != nil {
				test.template(&template)
			}
			if found := template.Outdated()(pod); found != test.outdated {
				t.Errorf("outdated: %t", found)
			}
		})
	}
}

func TestTheTemplateIsRenderedOnceForAllPods(t *testing.T) {
	pod, _, err := Inject(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "app", Annotations: map[string]string{contract.InjectAnnotation: "true"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}, "shop", nil, testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	outdated := testTemplate().Outdated()
	if n := testing.AllocsPerRun(100, func() { outdated(pod) }); n > 1 {
		t.Errorf("%v allocations to judge a pod, expected one at most: to render the template takes hundreds", n)
	}
}
