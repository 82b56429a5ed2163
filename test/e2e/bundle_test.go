// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// TestABundleHasTheLogOfAnOperatorThatDoesNotStartWithoutTheArgumentThatItQuotes runs one more pod of the operator, whose arguments
// are wrong.
func TestABundleHasTheLogOfAnOperatorThatDoesNotStartWithoutTheArgumentThatItQuotes(t *testing.T) {
	const planted = "planted-s3cret"
	operators, err := shared.load.OperatorPods(t.Context())
	must(t, err)
	broken := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "broken-", Namespace: environment.Namespace, Labels: operators[0].Labels},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, SecurityContext: operators[0].Spec.SecurityContext, Containers: []corev1.Container{{
			Name: "operator", Image: operators[0].Spec.Containers[0].Image, Args: []string{planted}, SecurityContext: operators[0].Spec.Containers[0].SecurityContext,
		}}},
	}
	delete(broken.Labels, "pod-template-hash") // the ReplicaSet of the operator does not own this pod
	must(t, shared.client.Create(t.Context(), broken))
	t.Cleanup(func() {
		if err := shared.client.Delete(timeoutContext(t, time.Minute), broken, client.GracePeriodSeconds(0)); err != nil {
			t.Errorf("removing the pod %s: %v", broken.Name, err)
		}
	})
	eventually(t, time.Minute, "the pod has ended", func() error {
		if err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(broken), broken); err != nil {
			return err
		}
		if broken.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("it is %s", broken.Status.Phase)
		}
		return nil
	})

	folder := t.TempDir()
	archive := filepath.Join(folder, "bundle.tar.gz")
	plugin(t)("bundle", "-f", archive)
	if output, err := exec.CommandContext(t.Context(), "tar", "-xzf", archive, "-C", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for name, says := range map[string]string{broken.Name: `unexpected argument "(an argument was left out)", expected flags only`, operators[0].Name: "msg"} {
		log, err := os.ReadFile(filepath.Join(folder, "crypto-broker-bundle", "operator", "logs", name+".log"))
		must(t, err)
		if !strings.Contains(string(log), says) {
			t.Errorf("%q is not in the log of %s:\n%s", says, name, log)
		}
	}
	if output, err := exec.CommandContext(t.Context(), "grep", "-r", planted, filepath.Join(folder, "crypto-broker-bundle")).CombinedOutput(); err == nil {
		t.Errorf("found the secret:\n%s", output)
	}
}
