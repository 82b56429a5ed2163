// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// warnings collects the warnings of the API server.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// warningsOf creates an object, as a dry run, and returns the hints.
func warningsOf(ctx context.Context, object client.Object) (hints []string, err error) {
	heard := &warnings{}
	config := rest.CopyConfig(server.config)
	config.WarningHandler = heard
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	if err := c.Create(ctx, object, client.DryRunAll); err != nil {
		return nil, err
	}
	for _, text := range heard.texts {
		if strings.Contains(text, "-hints-") {
			hints = append(hints, text)
		}
	}
	return hints, nil
}

func TestAnnotationsThatNobodyWouldReadAreWarnedOf(t *testing.T) {
	const windows = "found cryptobroker.io/inject on a pod for Windows, which gets no broker, expected one for Linux: brokers run only on Linux"
	const lacks = "and no cryptobroker.io/inject, without which the pod gets no broker"
	pod := func(namespace string, annotations map[string]string) *corev1.Pod {
		object := plainPod(namespace, "pod")
		object.Annotations = annotations
		return object
	}
	template := func(annotations map[string]string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}, Annotations: annotations},
			Spec:       plainPod("", "").Spec,
		}
	}
	deployment := func(namespace string, own, inner map[string]string) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a", Annotations: own},
			Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}, Template: template(inner)},
		}
	}
	job := func(annotations map[string]string) batchv1.JobSpec {
		spec := batchv1.JobSpec{Template: template(annotations)}
		spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		return spec
	}
	asked := map[string]string{contract.InjectAnnotation: "true"}
	misspelt := map[string]string{"cryptobroker.io/injct": "true"}
	tests := map[string]struct {
		object   func(namespace string) client.Object
		labelled bool
		want     string
	}{
		"a pod that declines": {object: func(n string) client.Object {
			return pod(n, map[string]string{contract.InjectAnnotation: "false", contract.AllowedProfilesAnnotation: "Default"})
		}},
		"a pod without annotations of ours": {object: func(n string) client.Object { return pod(n, map[string]string{"a": "b"}) }},
		"a pod whose annotation is misspelt": {
			object: func(n string) client.Object { return pod(n, misspelt) },
			want:   "metadata.annotations: found cryptobroker.io/injct " + lacks,
		},
		"a Deployment that only names profiles, in a labelled namespace": {
			object: func(n string) client.Object {
				return deployment(n, nil, map[string]string{contract.AllowedProfilesAnnotation: "Default"})
			},
			labelled: true,
		},
		"a Deployment that asks in its template": {object: func(n string) client.Object { return deployment(n, nil, asked) }},
		"a Deployment that asks on itself": {
			object: func(n string) client.Object { return deployment(n, asked, nil) },
			want:   "metadata.annotations: found cryptobroker.io/inject, which does nothing here: it belongs to the template of the pods, spec.template.metadata.annotations",
		},
		"a Deployment whose template has a misspelt annotation": {
			object: func(n string) client.Object { return deployment(n, nil, misspelt) },
			want:   "spec.template.metadata.annotations: found cryptobroker.io/injct " + lacks,
		},
		"a Job that asks on itself": {
			object: func(n string) client.Object {
				return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: "a", Annotations: asked}, Spec: job(nil)}
			},
			want: "it belongs to the template of the pods, spec.template.metadata.annotations",
		},
		"a pod for Windows that asks": {
			object: func(n string) client.Object {
				object := pod(n, asked)
				object.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
				return object
			},
			want: "metadata.annotations: " + windows,
		},
		"a pod for Windows that asks in a labelled namespace": {
			object: func(n string) client.Object {
				object := pod(n, asked)
				object.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
				return object
			},
			labelled: true,
			want:     "metadata.annotations: " + windows,
		},
		"a pod for Windows that declines": {object: func(n string) client.Object {
			object := pod(n, map[string]string{contract.InjectAnnotation: "false"})
			object.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
			return object
		}},
		"a pod for Windows that does not ask, in a labelled namespace": {
			object: func(n string) client.Object {
				object := pod(n, nil)
				object.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
				return object
			},
			labelled: true,
		},
		"a Deployment of pods for Windows, by their nodes, that asks": {
			object: func(n string) client.Object {
				object := deployment(n, nil, asked)
				object.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "windows"}
				return object
			},
			want: "spec.template.metadata.annotations: " + windows,
		},
		"a Deployment of pods for Windows, by their affinity, that asks": {
			object: func(n string) client.Object {
				object := deployment(n, nil, asked)
				object.Spec.Template.Spec.Affinity = requiring("windows")
				return object
			},
			want: "spec.template.metadata.annotations: " + windows,
		},
		"a CronJob whose template has a misspelt annotation": {
			object: func(n string) client.Object {
				return &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: "a"}, Spec: batchv1.CronJobSpec{
					Schedule: "0 0 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: job(misspelt)}}}
			},
			want: "spec.jobTemplate.spec.template.metadata.annotations: found cryptobroker.io/injct " + lacks,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			labels := map[string]string{}
			if test.labelled {
				labels[contract.InjectionLabel] = contract.InjectionEnabled
			}
			namespace := namespaceFor(t, labels)
			eventually(t, "the hint", func(ctx context.Context) error {
				hints, err := warningsOf(ctx, test.object(namespace))
				switch {
				case err != nil:
					return err
				case test.want == "" && len(hints) > 0:
					return fmt.Errorf("found %q, expected no hint", hints)
				case test.want != "" && (len(hints) != 1 || !strings.Contains(hints[0], test.want)):
					return errors.New("found " + fmt.Sprintf("%q", hints) + ", expected one that says " + test.want)
				}
				return nil
			})
		})
	}
}
