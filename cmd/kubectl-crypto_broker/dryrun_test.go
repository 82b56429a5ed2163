// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// asStored changes a pod like every API server: it sets defaults, and mounts a token into each container.
func asStored(pod *corev1.Pod, suffix string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Name = "crypto-broker-dry-run-" + suffix
	pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: manifest.TokenVolume + suffix})
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].TerminationMessagePath = corev1.TerminationMessagePathDefault
			containers[i].VolumeMounts = append(containers[i].VolumeMounts, corev1.VolumeMount{Name: manifest.TokenVolume + suffix, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"})
		}
	}
	return pod
}

func TestOfADryRunOnlyWhatTheBrokerNeedsIsWrittenIntoTheManifest(t *testing.T) {
	given, err := manifest.ReadDocuments([]string{"testdata/app.yaml", "testdata/kinds.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, d := range given {
		for _, item := range d.Items() {
			p, err := item.Template("shop")
			if err != nil {
				t.Fatal(err)
			}
			if p == nil || p.Pod.Annotations[contract.InjectAnnotation] == "false" {
				continue
			}
			want, _, err := injection.Inject(p.Pod, "shop", []byte{}, defaultTemplate())
			if err != nil {
				t.Fatal(err)
			}
			if injected.Broker(want) == nil {
				continue
			}
			tried++
			declines := p.Pod.DeepCopy()
			if declines.Annotations == nil {
				declines.Annotations = map[string]string{}
			}
			declines.Annotations[contract.InjectAnnotation] = "false"
			if err := p.Patch(asStored(declines, "abcde"), asStored(want, "fghij")); err != nil {
				t.Fatal(err)
			}
			after, err := item.Template("shop")
			if err != nil {
				t.Fatal(err)
			}
			broker, wanted := injected.Broker(after.Pod), injected.Broker(want)
			if broker == nil {
				t.Fatalf("%s has no broker", item.Name())
			}
			wanted.TerminationMessagePath = corev1.TerminationMessagePathDefault // as the API server stores it
			if !equality.Semantic.DeepEqual(want, after.Pod) {
				t.Errorf("%s: found (+) other than expected (-):\n%s", item.Name(), cmp.Diff(want, after.Pod))
			}
		}
	}
	if tried < 3 {
		t.Errorf("%d pods were tried, expected at least 3", tried)
	}
}
