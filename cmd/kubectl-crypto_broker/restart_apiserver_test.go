// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/dryrun"
)

// makeMissed creates a Deployment with a pod from before the operator was called,
// which asks by an annotation that the template has as well.
func makeMissed(t *testing.T, namespace, name, asks string, change ...func(*appsv1.Deployment)) {
	t.Helper()
	change = append([]func(*appsv1.Deployment){annotated(map[string]string{contract.InjectAnnotation: asks})}, change...)
	makePod(t, namespace, name+"-1-a", asks, makeDeployment(t, namespace, name, change...))
}

func TestNothingIsRestartedWhoseNewPodsWouldBeRefused(t *testing.T) {
	ns := uncovered(t)
	makeMissed(t, ns, "fine", "true")
	makeMissed(t, ns, "perhaps", "perhaps")
	makeMissed(t, ns, "lots", "true", annotated(map[string]string{contract.InjectAnnotation: "true", contract.MemoryLimitAnnotation: "lots"}))
	label(t, ns)
	for sentence, args := range map[string][]string{
		"found":               {"--missing"},
		"found, as a dry run": {"--missing", "--dry-run"},
		"named":               {"deploy/fine", "deploy/perhaps", "deploy/lots"},
	} {
		t.Run(sentence, func(t *testing.T) {
			code, stdout, stderr := plugin(t, append([]string{"restart", "-n", ns, "--yes", "--timeout", "1s"}, args...)...)
			for _, says := range []string{
				"nothing was restarted: ",
				"deployment/perhaps in namespace " + ns + ` cannot be restarted: a new pod of it is refused: admission webhook "annotated.inject.cryptobroker.io" denied the request: `,
				`found "perhaps"`,
				"deployment/lots in namespace " + ns + " cannot be restarted: a new pod of it is refused: ", `found "lots"`,
			} {
				if code != program.ExitFailed || stdout != "" || !strings.Contains(stderr, says) || strings.Contains(stderr, "deployment/fine") {
					t.Errorf("exit code %d, %q is not in %s\n%s", code, says, stderr, stdout)
				}
			}
		})
	}
	expect(t, restarted(t, ns))
}

func TestWhatWasFoundIsNotRestartedWhereANewPodGetsNoBroker(t *testing.T) {
	ns := uncovered(t)
	makePod(t, ns, "silent-1-a", "true", makeDeployment(t, ns, "silent"))
	label(t, ns)
	code, _, stderr := plugin(t, "restart", "--missing", "-n", ns, "--yes", "--timeout", "1s")
	if want := "nothing was restarted: deployment/silent in namespace " + ns + " cannot be restarted: a new pod of it gets no broker: not asked\n"; code != program.ExitFailed || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
	expect(t, restarted(t, ns))
	rollOut(t, ns, "")
	if code, _, stderr := plugin(t, "restart", "deploy/silent", "-n", ns, "--yes"); code != program.ExitOK {
		t.Errorf("named, exit code %d: %s", code, stderr)
	}
	expect(t, restarted(t, ns), "silent")
}

func TestAStatefulSetThatClaimsCanBeRestarted(t *testing.T) {
	ns := covered(t)
	makeClaiming(t, ns)
	if code, stdout, stderr := plugin(t, "restart", "sts/store", "-n", ns, "--dry-run"); code != program.ExitOK || stdout != "statefulset/store in namespace "+ns+"\n" || stderr != "" {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
}

func TestAQuotaThatIsUsedUpIsToldAndNoObstacleToARestart(t *testing.T) {
	ns := covered(t)
	makeDeployment(t, ns, "orders")
	full := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Spec: corev1.ResourceQuotaSpec{Hard: full}}
	quota, err := apiServer.CoreV1().ResourceQuotas(ns).Create(t.Context(), quota, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: full, Used: full}
	if _, err := apiServer.CoreV1().ResourceQuotas(ns).UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	admitted(t, ns, "it exceeds the quota", func(_ *corev1.Pod, err error) bool {
		return err != nil && strings.Contains(err.Error(), dryrun.QuotaExceeded)
	})
	code, stdout, stderr := plugin(t, "restart", "deploy/orders", "-n", ns, "--dry-run")
	if want := "note: as long as no pod of deployment/orders in namespace " + ns + " has ended, a new one is refused: "; code != program.ExitOK || stdout == "" || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, found %q\n%s", code, stderr, stdout)
	}
}
