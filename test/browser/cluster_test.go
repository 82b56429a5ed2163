// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/test/chromium"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

var (
	// kubernetes has all rights.
	kubernetes client.Client
	// kubeconfig is the file that the plugin reads, and plugin its program.
	kubeconfig, plugin string
	browser            chromium.Program
)

// viewer is a user who may see everything that the page shows, and change nothing.
const viewer = "jane"

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "dashboard")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := apiserver.Run(m, func(admin *rest.Config) error { return prepare(admin, folder) })
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// prepare finds Chromium, makes the fleet, and writes the plugin and its kubeconfig into a folder.
func prepare(admin *rest.Config, folder string) error {
	ctx := context.Background()
	repository, err := environment.Repository()
	if err != nil {
		return err
	}
	cache, err := environment.Cache(repository)
	if err != nil {
		return err
	}
	if browser, err = chromium.Find(ctx, os.Stderr, cache); err != nil {
		return err
	}
	plugin, kubeconfig = filepath.Join(folder, "kubectl-crypto_broker"), filepath.Join(folder, "kubeconfig")
	if _, err := environment.Command(ctx, repository, os.Stderr, "go", "build", "-o", plugin, "./cmd/kubectl-crypto_broker"); err != nil {
		return err
	}
	file := clientcmdapi.NewConfig()
	file.Clusters["test"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
	file.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: admin.CertData, ClientKeyData: admin.KeyData}
	file.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	file.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*file, kubeconfig); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	if kubernetes, err = client.New(admin, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return makeFleet(ctx)
}

// hostile is text that would be markup, if the page made markup of text.
const hostile = `<img src=x onerror="document.title='broken'"><script>document.title='broken'</script>`

// makeFleet makes the objects as the operator and kubelets would have left them.
func makeFleet(ctx context.Context) error {
	objects := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: viewer}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods", "namespaces", "configmaps"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: viewer},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: viewer},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: viewer}},
		},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank"}},
		podOf("shop", "orders-1", "orders", true), podOf("shop", "orders-2", "orders", true), podOf("shop", "reports-0", "reports", false),
		podOf("bank", "vault-0", "vault", true), podOf("bank", "odd-0", `odd"; echo `+hostile, false),
	}
	for _, object := range objects {
		if err := kubernetes.Create(ctx, object); err != nil {
			return fmt.Errorf("%s: %w", object.GetName(), err)
		}
	}
	for _, p := range []*v1alpha1.CryptoProfile{
		profileOf("shop", "payments", "sha-512", 256, served(2, 2)),
		profileOf("shop", "legacy", "sha-256", 128, served(2, 2), func(p *v1alpha1.CryptoProfile) {
			p.Spec.Deprecation = &v1alpha1.Deprecation{DeprecatedSince: "2026-01-31", ReplacedBy: "payments", Reason: "SHA-256 has to go"}
		}),
		profileOf("bank", "archive", "sha3-512", 256, served(1, 1), func(p *v1alpha1.CryptoProfile) {
			p.Spec.Deprecation = &v1alpha1.Deprecation{DeprecatedSince: "2026-01-31", ReplacedBy: "tokens", Reason: hostile}
			p.Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid, hostile)}
		}),
		profileOf("bank", "tokens", "sha-384", 192, served(1, 1), rolledOut("9f86d081-1795420800", 2)),
	} {
		status := p.Status
		if err := kubernetes.Create(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		p.Status = status
		p.Status.ObservedGeneration = p.Generation
		if err := kubernetes.Status().Update(ctx, p); err != nil {
			return fmt.Errorf("the status of %s: %w", p.Name, err)
		}
	}
	return nil
}

// podOf returns a pod of a StatefulSet: either with a broker that has started, or one that asks for a broker and has none.
func podOf(namespace, name, owner string, with bool) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Annotations: map[string]string{contract.InjectAnnotation: "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: owner, UID: types.UID(owner), Controller: new(true)}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	if with {
		pod.Spec.InitContainers = []corev1.Container{{Name: contract.BrokerContainer, Image: "broker:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	}
	return pod
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
}

// profileOf returns a profile with its status.
func profileOf(namespace, name, digest string, strength int32, change ...func(*v1alpha1.CryptoProfile)) *v1alpha1.CryptoProfile {
	p := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.API.HashData = &v1alpha1.HashData{HashAlg: digest}
	p.Status.ProfileName, p.Status.Strength, p.Status.FIPS = name, &strength, v1alpha1.FIPSApproved
	p.Status.Digest = "sha256:" + strings.Repeat("0", 64)
	for _, change := range change {
		change(p)
	}
	return p
}

// served gives a profile a status that says that some of its pods serve it.
func served(updated, pods int32) func(*v1alpha1.CryptoProfile) {
	return func(p *v1alpha1.CryptoProfile) {
		p.Status.Pods, p.Status.UpdatedPods = pods, updated
		propagated := condition(v1alpha1.ConditionPropagated, metav1.ConditionTrue, v1alpha1.ReasonAllUpdated, "")
		if updated < pods {
			propagated = condition(v1alpha1.ConditionPropagated, metav1.ConditionFalse, v1alpha1.ReasonInProgress, "on its way")
		}
		p.Status.Conditions = []metav1.Condition{
			condition(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonValid, ""), propagated,
			condition(v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected, ""),
		}
	}
}

// rolledOut gives a profile a rollout that waits to be promoted.
func rolledOut(attempt string, step int32) func(*v1alpha1.CryptoProfile) {
	return func(p *v1alpha1.CryptoProfile) {
		p.Spec.Rollout = &v1alpha1.Rollout{Steps: []v1alpha1.RolloutStep{{SetWeight: new(int32(10))}, {SetWeight: new(int32(50)), Pause: &v1alpha1.RolloutPause{}}}}
		p.Status.Rollout = &v1alpha1.RolloutStatus{
			Phase: v1alpha1.RolloutPaused, Digest: "sha256:" + strings.Repeat("1", 64), Attempt: attempt, Step: step, Weight: 50,
			NewPods: 1, OldPods: 1, Since: metav1.Now(), Message: "Waits until somebody promotes it.",
		}
	}
}

// dashboard runs the command until the test ends, and returns the address of its page.
func dashboard(t *testing.T, flags ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), plugin, append([]string{"dashboard"}, flags...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(output)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the command printed no address: %v", err)
		}
		if strings.HasPrefix(line, "http://127.0.0.1:") {
			t.Cleanup(func() {
				_, _ = io.Copy(io.Discard, lines)
				if err := command.Wait(); command.ProcessState.ExitCode() != 0 {
					t.Errorf("the command ended with: %v", err)
				}
			})
			return strings.TrimSpace(line)
		}
	}
}
