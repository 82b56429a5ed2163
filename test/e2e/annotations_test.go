// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/app/stats"
)

// sidePort is where the second container of a pod tells its counts.
const sidePort = 8081

// bySocketVariable makes an application use the socket that the variable names.
func bySocketVariable(container corev1.Container) corev1.Container {
	container.Args = append(container.Args, "--socket", "$(CRYPTO_BROKER_SOCKET)")
	return container
}

// side returns a second application for a pod.
func side(environment map[string]string) corev1.Container {
	if environment == nil {
		environment = map[string]string{}
	}
	environment["STATS_ADDRESS"] = fmt.Sprintf(":%d", sidePort)
	return appContainer("side", environment)
}

// asked returns the annotations of a pod that asks for a broker. Its argument has further annotations, without the prefix of their
// names.
func asked(pairs ...string) map[string]string {
	annotations := inject("true")
	for i := 0; i < len(pairs); i += 2 {
		annotations[contract.AnnotationPrefix+pairs[i]] = pairs[i+1]
	}
	return annotations
}

// awaitErrors waits until calls of an application have failed, and returns the errors.
func awaitErrors(t testing.TB, pod *corev1.Pod, port int) *stats.Stats {
	t.Helper()
	var found *stats.Stats
	eventually(t, patience, "the calls of the application fail", func() (err error) {
		if found, err = appStats(t, pod, port); err == nil && found.Failed < 2 {
			err = fmt.Errorf("of %d calls %d failed", found.Calls, found.Failed)
		}
		return err
	})
	return found
}

func expectAllRefused(t testing.TB, found *stats.Stats, want string) {
	t.Helper()
	if found.Calls != found.Failed || !strings.Contains(strings.Join(found.Errors, "\n"), want) {
		t.Errorf("of %d calls %d failed with %q, expected all of them with %q", found.Calls, found.Failed, found.Errors, want)
	}
}

// expectSideReachesNobody waits until the first application of a pod was served and expects that the second, which
// goes on trying, was not.
func expectSideReachesNobody(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	before := awaitCalls(t, pod, statsPort, nil, 1)
	expectNoFailure(t, pod, awaitCalls(t, pod, statsPort, before, 50))
	found, err := appStats(t, pod, sidePort)
	must(t, err)
	if found.Calls > found.Failed || found.HealthChecks > found.HealthFailed {
		t.Errorf("a container without a socket was served: %+v", *found)
	}
}

func TestAPodGetsTheBrokerThatItsAnnotationsAskFor(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, restricted)
	profile := createProfile(t, namespace, "sha3-256")
	must(t, shared.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "broker-keys", Namespace: namespace},
		StringData: map[string]string{"orders.bin": strings.Repeat("k", 32)},
	}))
	pod := appPod(namespace, asked(
		"profiles", "Default", "containers", "app", "socket-path", "/run/crypto", "memory-limit", "64Mi", "cpu-limit", "1",
		"log-level", "debug", "metrics-port", "9481", "keys", "broker-keys"), nil)
	pod.Spec.Containers[0] = bySocketVariable(pod.Spec.Containers[0])
	pod.Spec.Containers = append(pod.Spec.Containers, side(map[string]string{"SOCKET": "/run/crypto/crypto-broker-server.sock"}))
	pod = createPod(t, pod)
	expectSideReachesNobody(t, pod)

	eventually(t, patience, "the broker has the key of the Secret", func() error {
		metrics, err := podGet(t.Context(), pod, 9481, "metrics")
		if err == nil && !strings.Contains(string(metrics), `crypto_broker_keys{state="used"} 1`) {
			err = fmt.Errorf("the metrics on the chosen port do not say so")
		}
		return err
	})
	// The operator asks at the port that the pod chose.
	awaitPropagated(t, profile, 1)
	mustKeepMounts(t, pod)
}

func TestTheAnnotationOfARunningPodChangesTheLevelOfItsLog(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, restricted)
	createProfile(t, namespace, "sha3-256")
	pod := createPod(t, appPod(namespace, asked(), nil))
	for _, level := range []string{`"debug"`, "null"} {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, contract.LogLevelAnnotation, level)
		must(t, shared.client.Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(patch))))
		want := `"logLevel":"DEBUG","logLevelBefore":"INFO"`
		if level == "null" {
			want = `"logLevel":"INFO","logLevelBefore":"DEBUG"`
		}
		eventually(t, 3*time.Minute, "the broker logs by the level "+level, func() error {
			lines, err := shared.clientset.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: contract.BrokerContainer}).DoRaw(t.Context())
			if err == nil && !strings.Contains(string(lines), want) {
				err = fmt.Errorf("its log does not say so:\n%s", lines)
			}
			return err
		})
	}
}

// mustKeepMounts checks that the Secret is mounted in the broker alone.
func mustKeepMounts(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		for _, mount := range container.VolumeMounts {
			if strings.HasPrefix(mount.Name, contract.KeysVolumePrefix) && container.Name != contract.BrokerContainer {
				t.Errorf("the container %s mounts %s", container.Name, mount.Name)
			}
		}
	}
}

// A container can claim the name and the path of another container. Only the socket that it can reach counts.
func TestAContainerGetsTheVerdictOfItsOwnIdentity(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, restricted)
	profile := &v1alpha1.CryptoProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace},
		Spec:       hashing("Default", "sha-256"),
	}
	profile.Spec.Callers = &v1alpha1.Callers{Containers: []string{"app"}}
	must(t, shared.client.Create(t.Context(), profile))
	other := hashing("Other", "sha-384")
	must(t, shared.client.Create(t.Context(), &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: namespace}, Spec: other}))

	t.Run("where a profile names the other", func(t *testing.T) {
		pod := appPod(namespace, asked(), nil)
		pod.Spec.Containers = append(pod.Spec.Containers, side(nil))
		pod = createPod(t, pod)
		expectNoFailure(t, pod, awaitCalls(t, pod, statsPort, nil, 20))
		expectAllRefused(t, awaitErrors(t, pod, sidePort), `the profile does not allow container "side"`)
	})
	t.Run("where it goes for the path of the other", func(t *testing.T) {
		for _, path := range []string{"/run/broker/app/crypto-broker-server.sock", "/tmp/open-crypto-broker/../app/crypto-broker-server.sock"} {
			pod := appPod(namespace, asked(), nil)
			pod.Spec.Containers = append(pod.Spec.Containers, side(map[string]string{"SOCKET": path}))
			pod = createPod(t, pod)
			expectSideReachesNobody(t, pod)
		}
	})
	t.Run("where it mounts what it can", func(t *testing.T) {
		pod := appPod(namespace, asked(), nil)
		spy := side(nil)
		spy.VolumeMounts = []corev1.VolumeMount{{Name: contract.SocketVolume, MountPath: "/all"}}
		pod.Spec.Containers = append(pod.Spec.Containers, spy)
		expectRefused(t, shared.client.Create(t.Context(), pod), contract.SocketVolume, "reserved")
	})
	t.Run("where the pod narrows it", func(t *testing.T) {
		pod := appPod(namespace, asked("profiles.side", "Default"), map[string]string{"PROFILE": "Other"})
		pod.Spec.Containers = append(pod.Spec.Containers, side(map[string]string{"PROFILE": "Other"}))
		pod = createPod(t, pod)
		expectNoFailure(t, pod, awaitCalls(t, pod, statsPort, nil, 20))
		expectAllRefused(t, awaitErrors(t, pod, sidePort), `the container "side" may use only the profiles that`)
	})
	t.Run("and none where processes are shared", func(t *testing.T) {
		pod := appPod(namespace, asked(), nil)
		pod.Spec.ShareProcessNamespace = ptr.To(true)
		pod.Spec.Containers = append(pod.Spec.Containers, side(map[string]string{"PROFILE": "Other"}))
		pod = createPod(t, pod)
		expectAllRefused(t, awaitErrors(t, pod, statsPort), "share their processes and can call for each other")
		expectNoFailure(t, pod, awaitCalls(t, pod, sidePort, nil, 20))
	})
}
