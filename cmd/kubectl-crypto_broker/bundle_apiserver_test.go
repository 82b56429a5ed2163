// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/effective"
)

// planted is a secret that no archive may contain.
const planted = "planted-s3cret"

// unpacked reads the files of an archive.
func unpacked(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "crypto-broker-bundle/")] = string(content)
	}
}

// plant writes a secret into every field of the objects of an installation where a person could write one.
func plant(t *testing.T, in *fixtureInstallation) {
	t.Helper()
	pem := `-----BEGIN PRIVATE KEY-----\n` + planted + `\n-----END PRIVATE KEY-----`
	patch(t, types.MergePatchType, `{"data":{"current.pem":"cGxhbnRlZC1zM2NyZXQ="},"metadata":{"annotations":{"note":"`+planted+`"}}}`, "/api/v1/namespaces", in.operator, "secrets/signing")
	patch(t, types.StrategicMergePatchType, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"`+planted+`"},"labels":{"note":"`+planted+`"}},
		"spec":{"template":{"metadata":{"annotations":{"note":"`+planted+`"}},"spec":{"containers":[{"name":"operator",
		"args":["--signing-secret-name=signing","--token=`+planted+`","--password","`+planted+`","`+planted+`"],
		"env":[{"name":"TOKEN","value":"`+planted+`"}],"command":["`+planted+`"]},{"name":"sidecar","image":"`+planted+`","args":["`+planted+`"]}]}}}}`,
		"/apis/apps/v1/namespaces", in.operator, "deployments", in.name)
	patch(t, types.MergePatchType, `{"metadata":{"annotations":{"note":"`+planted+`"},"labels":{"note":"`+planted+`"}}}`, "/api/v1/namespaces", in.namespace)
	patch(t, types.MergePatchType, `{"metadata":{"annotations":{"note":"`+planted+`"}}}`, registration, "mutatingwebhookconfigurations", in.name)

	pod := makePod(t, in.namespace, "planted", "true", nil)
	patch(t, types.MergePatchType, `{"metadata":{"annotations":{"note":"`+planted+`","cryptobroker.io/unknown":"`+planted+`","`+contract.ProfilesSnapshotAnnotation+`":"`+planted+`"},"labels":{"note":"`+planted+`"}}}`,
		"/api/v1/namespaces", in.namespace, "pods", pod.Name)
	_, err := apiServer.CoreV1().Pods(in.namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "with-variables", Annotations: map[string]string{contract.InjectAnnotation: "true"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", Image: "app", Args: []string{planted}, Command: []string{planted}, Env: []corev1.EnvVar{{Name: "TOKEN", Value: planted}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	onNode(t, pod)
	status, err := apiServer.CoreV1().Pods(in.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status.Status.Message = planted
	status.Status.InitContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: planted}}
	if _, err := apiServer.CoreV1().Pods(in.namespace).UpdateStatus(t.Context(), status, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for controller, note := range map[string]string{"someone": planted, v1alpha1.FieldManager: "The operator writes this, and " + strings.ReplaceAll(pem, `\n`, "\n")} {
		_, err := apiServer.EventsV1().Events(in.namespace).Create(t.Context(), &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "event-"}, EventTime: metav1.NowMicro(), ReportingController: controller, ReportingInstance: "one",
			Type: "Warning", Reason: "Planted", Action: "Plant", Note: note, Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: in.namespace, Name: pod.Name},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestABundleHasNoSecretThatWasPlanted(t *testing.T) {
	c, in, ns := reconcile(t), install(t), uncovered(t)
	p := hashing(ns, "planted", "", "sha-512")
	p.Annotations, p.Labels = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": planted}, map[string]string{"note": planted}
	p.Spec.KMS = &v1alpha1.KMS{Client: "pkcs11", Config: map[string]apiextensionsv1.JSON{"pin": {Raw: []byte(`"` + planted + `"`)}}}
	create(t, c, p)
	awaitState(t, ns, "cprof/planted", effective.StateServed)
	plant(t, in)

	target := filepath.Join(t.TempDir(), "bundle.tar.gz")
	code, stdout, stderr := plugin(t, "bundle", "-f", target, "--operator-namespace", in.operator)
	if code != program.ExitOK || !strings.HasPrefix(stdout, "Wrote "+target) {
		t.Fatalf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	files := unpacked(t, target)
	for name, content := range files {
		if strings.Contains(content, planted) || strings.Contains(content, "cGxhbnRlZC1zM2NyZXQ") || strings.Contains(content, "PRIVATE KEY---") {
			t.Errorf("%s has the secret:\n%s", name, content)
		}
	}
	for name, says := range map[string]string{
		"check.yaml":                     "check: operator",
		"operator/deployment.yaml":       "--signing-secret-name=signing",
		"operator/lease.yaml":            "holder: replica-1",
		"cluster/webhooks.yaml":          "labelled.inject.cryptobroker.io",
		"cluster/namespaces.yaml":        in.namespace,
		"namespaces/cryptoprofiles.yaml": "hashAlg: sha-512",
		"namespaces/sets.yaml":           "HashAlg: sha-512",
		"namespaces/pods.yaml":           "waits: ImagePullBackOff",
		"namespaces/events.yaml":         "The operator writes this, and (a private key was left out)",
		"MANIFEST.txt":                   "- of the operator's arguments: values of flags",
	} {
		if !strings.Contains(files[name], says) {
			t.Errorf("%q is not in %s:\n%s", says, name, files[name])
		}
	}
	for _, flag := range []string{"--token\n", "- TOKEN\n"} {
		if !strings.Contains(files["operator/deployment.yaml"], flag) {
			t.Errorf("%q is not in\n%s", flag, files["operator/deployment.yaml"])
		}
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, found the mode %v", err, info.Mode())
	}
	if code, _, stderr := plugin(t, "bundle", "-f", target, "--operator-namespace", in.operator); code != program.ExitFailed || !strings.Contains(stderr, "exists, expected a name that is free") {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
}

func TestABundleSaysWhatCouldNotBeRead(t *testing.T) {
	in := install(t)
	target := filepath.Join(t.TempDir(), "bundle.tar.gz")
	code, _, stderr := plugin(t, "bundle", "-f", target, "--operator-namespace", in.operator, "-n", in.namespace, "--as", viewer(t, in.namespace))
	if code != program.ExitOK || !strings.Contains(stderr, "note: left out: webhook configurations: the right to list mutatingwebhookconfigurations is missing") {
		t.Errorf("exit code %d, found %q", code, stderr)
	}
	if manifest := unpacked(t, target)["MANIFEST.txt"]; !strings.Contains(manifest, "- webhook configurations: the right to list mutatingwebhookconfigurations is missing") || !strings.Contains(manifest, "- namespaces/pods.yaml\n") {
		t.Errorf("found the manifest\n%s", manifest)
	}
}
