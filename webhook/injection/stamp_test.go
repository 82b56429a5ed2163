// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

func TestABrokerIsOutdatedWhenANewPodWouldGetAnother(t *testing.T) {
	tests := map[string]struct {
		pod      func(*corev1.Pod)
		template func(*template.Template)
		outdated bool
	}{
		"of the same template": {},
		"of another version of the operator that makes the same": {template: func(t *template.Template) { t.Version = "9.9.9" }},
		"another image":                   {template: func(t *template.Template) { t.Image = "broker:next" }, outdated: true},
		"another setting":                 {template: func(t *template.Template) { t.StatusPort = 9999 }, outdated: true},
		"a stamp that somebody took away": {pod: func(p *corev1.Pod) { delete(p.Annotations, contract.InjectedAnnotation) }},
		"an image that somebody put in":   {pod: func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "other" }, outdated: true},
		"an image that the pod asked for": {pod: func(p *corev1.Pod) {
			p.Annotations[contract.ImageAnnotation] = "other"
			p.Spec.InitContainers[0].Image = "other"
		}},
		"without the key gateway, which is not for each namespace": {template: func(t *template.Template) { t.KeyGateway = "gateway:8443" }},
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
			if found := Outdated(template)(pod); found != test.outdated {
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
	outdated := Outdated(testTemplate())
	if n := testing.AllocsPerRun(100, func() { outdated(pod) }); n > 1 {
		t.Errorf("%v allocations to judge a pod, expected one at most: to render the template takes hundreds", n)
	}
}

func TestTheStampChangesWithEverythingThatGoesIntoPods(t *testing.T) {
	changes := map[string]func(*template.Template){
		"the image":       func(t *template.Template) { t.Image = "example.com/broker:2" },
		"the pull policy": func(t *template.Template) { t.PullPolicy = corev1.PullAlways },
		"the group":       func(t *template.Template) { t.SocketGroup = 1 },
		"the port":        func(t *template.Template) { t.StatusPort = 1024 },
		"the resources": func(t *template.Template) {
			t.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
		},
		"the log level": func(t *template.Template) { t.LogLevel = "debug" },
		"FIPS 140-3":    func(t *template.Template) { t.RequireFIPS = true },
		"the traces":    func(t *template.Template) { t.Traces = testTraces() },
		"the audit":     func(t *template.Template) { t.Audit = template.Audit{Endpoint: "http://collector:4317"} },
		"the sampler":   func(t *template.Template) { t.Traces = testTraces(); t.Traces.Sampler = "always_on" },
	}
	stamps := map[string]string{"nothing": stampOf(testTemplate())}
	for name, change := range changes {
		template := testTemplate()
		change(&template)
		for other, stamp := range stamps {
			if stamp == stampOf(template) {
				t.Errorf("%s and %s lead to the same stamp %q", name, other, stamp)
			}
		}
		stamps[name] = stampOf(template)
	}

	version := testTemplate()
	version.Version = "0.2.0"
	if before, after := stampOf(testTemplate()), stampOf(version); strings.TrimPrefix(before, "0.1.0/") != strings.TrimPrefix(after, "0.2.0/") {
		t.Errorf("another version with the same template leads from %q to %q, expected the same digits", before, after)
	}
	assigned := testTemplate()
	assigned.NamespaceUserIDs = true
	if before, after := stampOf(testTemplate()), stampOf(assigned); before != after {
		t.Errorf("a namespace that assigns user IDs leads from %q to %q, expected the same stamp", before, after)
	}
}

func TestTheStampDoesNotChangeWithWhatPodsMayChoose(t *testing.T) {
	other := testTemplate()
	other.AllowedImages = nil
	if before, after := stampOf(testTemplate()), stampOf(other); before != after {
		t.Errorf("other images that are allowed lead from %q to %q, expected the same stamp", before, after)
	}
}
