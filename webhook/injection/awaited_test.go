// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// awaitingAgent is a pod that names a container which another injector adds.
func awaitingAgent(t *testing.T) *corev1.Pod {
	t.Helper()
	pod, _, err := Inject(fixture.PodWith(fixture.Annotated("containers", "app, agent"), fixture.Annotated("profiles.agent", "Default")), "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestTheBrokerIsMadeForAContainerThatIsAwaitedAndTheOwnerIsTold(t *testing.T) {
	_, warnings, err := Inject(fixture.PodWith(fixture.Annotated("containers", "app, agent")), "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`metadata.annotations[cryptobroker.io/containers]: the pod has no container "agent" now and is refused unless another injector adds it`}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("other warnings (-want +found):\n%s", diff)
	}
	arguments := awaitingAgent(t).Spec.InitContainers[0].Args
	for _, want := range []string{"--callers=app,agent", "--caller-profiles=agent=Default"} {
		if !slices.Contains(arguments, want) {
			t.Errorf("the broker has the arguments %q, expected %s among them", arguments, want)
		}
	}
}

func TestAContainerThatWasAwaitedGetsItsSocketWhenItComes(t *testing.T) {
	for sentence, add := range map[string]func(*corev1.Pod, corev1.Container){
		"behind the others": func(pod *corev1.Pod, c corev1.Container) { pod.Spec.Containers = append(pod.Spec.Containers, c) },
		"in front of them": func(pod *corev1.Pod, c corev1.Container) {
			pod.Spec.Containers = slices.Insert(pod.Spec.Containers, 0, c)
		},
		"as an init container": func(pod *corev1.Pod, c corev1.Container) {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			pod := awaitingAgent(t)
			agent := corev1.Container{Name: "agent", Image: "example.com/agent:1"}
			add(pod, agent)
			second, warnings, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			if len(warnings) > 0 {
				t.Errorf("the second call warns %q, expected nothing", warnings)
			}
			agent.VolumeMounts = []corev1.VolumeMount{{Name: contract.SocketVolume, MountPath: contract.SocketDir, SubPath: "agent", ReadOnly: true}}
			agent.Env = []corev1.EnvVar{{Name: contract.SocketVariable, Value: contract.SocketDir + "/" + contract.SocketFile}}
			want := awaitingAgent(t)
			add(want, agent)
			if diff := cmp.Diff(want, second); diff != "" {
				t.Errorf("not what the pod should become (-want +found):\n%s", diff)
			}
			if patched := fixture.Patched(t, fixture.JSON(t, pod), pod, second); !fixture.EqualJSON(t, patched, fixture.JSON(t, second)) {
				t.Errorf("the patch makes %s", patched)
			}
			third, _, err := Inject(second, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(second, third); diff != "" {
				t.Errorf("the third call changed the pod (-second +third):\n%s", diff)
			}
		})
	}
}

func TestWhileAContainerIsAwaitedFurtherCallsChangeNothing(t *testing.T) {
	pod := awaitingAgent(t)
	again, _, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pod, again); diff != "" {
		t.Errorf("the second call changed the pod (-found +made):\n%s", diff)
	}
}

func TestABrokerCanBeForAwaitedContainersAlone(t *testing.T) {
	pod, _, err := Inject(fixture.PodWith(fixture.Annotated("containers", "agent")), "shop", nil, testTemplate())
	if err != nil {
		t.Fatal(err)
	}
	if mounts := fixture.SocketMounts(pod.Spec.Containers[0]); len(mounts) > 0 {
		t.Errorf("the app mounts %v, expected nothing", mounts)
	}
	fixture.Second(corev1.Container{Name: "agent"})(pod)
	if pod, _, err = Inject(pod, "shop", nil, testTemplate()); err != nil {
		t.Fatal(err)
	}
	if app, agent := fixture.SocketMounts(pod.Spec.Containers[0]), fixture.SocketMounts(pod.Spec.Containers[1]); len(app) > 0 || len(agent) != 1 {
		t.Errorf("the app mounts %v and the agent %v, expected a socket of the agent alone", app, agent)
	}
}

func TestAnAwaitedContainerIsRefusedWhereItsSocketCannotBe(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"before the broker": {
			func(pod *corev1.Pod) {
				pod.Spec.InitContainers = slices.Insert(pod.Spec.InitContainers, 0, corev1.Container{Name: "agent"})
			},
			`spec.initContainers[0]: found the container "agent", which the annotation cryptobroker.io/containers names, before the broker; expected it after the container "crypto-broker", or not in the annotation`,
		},
		"with a volume where the socket has to be": {
			fixture.Second(corev1.Container{Name: "agent", VolumeMounts: []corev1.VolumeMount{{Name: "agent-tmp", MountPath: contract.SocketDir}}}),
			`spec.containers[1].volumeMounts[0].mountPath: found "/tmp/open-crypto-broker" in container "agent", where the broker's socket has to be`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			pod := awaitingAgent(t)
			test.change(pod)
			if _, _, err := Inject(pod, "shop", []byte(fixture.ProfilesOfShop), testTemplate()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("found %v, expected %s", err, test.want)
			}
		})
	}
}
