// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

func testOptions() Options {
	template := template.Template{Image: "broker:1"}
	return Options{
		Excluded: []string{"operators"},
		Wanted: func(pod *corev1.Pod, byDefault bool) (bool, error) {
			decision, err := injection.Decide(pod, byDefault)
			return decision.Inject, err
		},
		Outdated: injection.Outdated(template),
	}
}

func withBroker(image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: contract.BrokerContainer, Image: image, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	}
}

// ending makes the init container end before the application starts.
func ending(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = nil }

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

// running makes the broker's container run since then, without being started.
func running(since time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{
			Name:  contract.BrokerContainer,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}},
		}}
	}
}

func TestAPodIsMissingItsBrokerOrHasAnOldOne(t *testing.T) {
	asked := annotated(contract.InjectAnnotation, "true")
	tests := map[string]struct {
		pod      []func(*corev1.Pod)
		labelled bool
		state    state
	}{
		"asked and has none":                           {pod: []func(*corev1.Pod){asked}, state: missing},
		"asked and has one":                            {pod: []func(*corev1.Pod){asked, withBroker("broker:1")}, state: fine},
		"asked and has an old one":                     {pod: []func(*corev1.Pod){asked, withBroker("broker:0")}, state: outdated},
		"has an init container of that name that ends": {pod: []func(*corev1.Pod){asked, withBroker("broker:1"), ending}, state: missing},
		"has one that runs and has not started":        {pod: []func(*corev1.Pod){asked, withBroker("broker:1"), running(time.Now())}, state: waiting},
		"has an old one that has not started":          {pod: []func(*corev1.Pod){asked, withBroker("broker:0"), running(time.Now())}, state: outdated},
		"asked for nothing":                            {state: fine},
		"asked for nothing where the namespace does":   {labelled: true, state: missing},
		"declined where the namespace asks":            {pod: []func(*corev1.Pod){annotated(contract.InjectAnnotation, "false")}, labelled: true, state: fine},
		"asked in a way that would have been refused":  {pod: []func(*corev1.Pod){annotated(contract.InjectAnnotation, "yes")}, state: refused},
		"a static pod":                                 {pod: []func(*corev1.Pod){annotated(corev1.MirrorPodAnnotationKey, "x")}, labelled: true, state: fine},
		"a Windows pod": {pod: []func(*corev1.Pod){asked, func(p *corev1.Pod) {
			p.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
		}}, state: fine},
		"a Windows pod by its node": {pod: []func(*corev1.Pod){asked, func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "windows"}
		}}, state: fine},
		"one that has succeeded": {pod: []func(*corev1.Pod){asked, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }}, state: fine},
		"one that has failed":    {pod: []func(*corev1.Pod){asked, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }}, state: fine},
		"one that is being deleted": {pod: []func(*corev1.Pod){asked, func(p *corev1.Pod) {
			now := metav1.Now()
			p.DeletionTimestamp = &now
		}}, state: fine},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			pod := &corev1.Pod{}
			for _, change := range test.pod {
				change(pod)
			}
			found := testOptions().judge(pod).state
			if found == unasked {
				found = map[bool]state{true: missing, false: fine}[test.labelled]
			}
			if found != test.state {
				t.Errorf("found %d, expected %d", found, test.state)
			}
		})
	}
}

func TestSomeNamespacesAreLeftOut(t *testing.T) {
	for namespace, out := range map[string]bool{"kube-system": true, "kube-node-lease": true, "operators": true, "shop": false} {
		if found := testOptions().excluded(namespace); found != out {
			t.Errorf("%s: excluded is %t", namespace, found)
		}
	}
}

func TestAnOwnerIsToldWhatIsNewOrWorseAndAgainAfterAnHour(t *testing.T) {
	tests := map[string]struct {
		before *report
		now    counts
		news   bool
	}{
		"never told":          {nil, counts{missing: 1}, true},
		"as before":           {&report{counts{missing: 1}, time.Now()}, counts{missing: 1}, false},
		"better":              {&report{counts{missing: 2}, time.Now()}, counts{missing: 1}, false},
		"worse":               {&report{counts{missing: 1}, time.Now()}, counts{missing: 2}, true},
		"bad in another way":  {&report{counts{missing: 1}, time.Now()}, counts{outdated: 1}, true},
		"waits as well":       {&report{counts{missing: 1}, time.Now()}, counts{missing: 1, waiting: 1}, true},
		"would be refused":    {&report{counts{missing: 1}, time.Now()}, counts{missing: 1, refused: 1}, true},
		"is corrected":        {&report{counts{missing: 1, refused: 1}, time.Now()}, counts{missing: 1}, true},
		"is gone":             {&report{counts{missing: 2, refused: 2}, time.Now()}, counts{missing: 1, refused: 1}, false},
		"as it was long ago":  {&report{counts{missing: 1}, time.Now().Add(-repeatAfter)}, counts{missing: 1}, true},
		"as it was just then": {&report{counts{missing: 1}, time.Now().Add(-repeatAfter / 2)}, counts{missing: 1}, false},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			if found := test.before.isOutdated(test.now, time.Now()); found != test.news {
				t.Errorf("news: %t", found)
			}
		})
	}
}

func TestTheRemedyIsOneThatHelps(t *testing.T) {
	tests := map[string]struct {
		kind, version, want string
	}{
		"a Deployment can be restarted":        {"Deployment", "apps/v1", "kubectl crypto-broker restart deployment/app -n shop"},
		"so can a DaemonSet":                   {"DaemonSet", "apps/v1", "kubectl crypto-broker restart daemonset/app -n shop"},
		"a kind of another group of that name": {"Deployment", "example.com/v1", "It has to be created again."},
		"a CronJob goes on by itself":          {"CronJob", "batch/v1", "Its next job gets one."},
		"a pod alone can't be":                 {"Pod", "v1", "It has to be created again."},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			if found := remedy(corev1.ObjectReference{Kind: test.kind, APIVersion: test.version, Name: "app", Namespace: "shop"}); !strings.Contains(found, test.want) {
				t.Errorf("found %q", found)
			}
		})
	}
}
