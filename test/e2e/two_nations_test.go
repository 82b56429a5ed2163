// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// The example is an application with OpenTDF's SDK. The services come from the chart, and run in pods.
func TestAFileForTwoNationsNeedsBothOfThem(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, restricted)
	n := startNations(t, newNamespace(t, restricted))
	app := n.startApp(t, namespace)
	const text = "the meeting is at nine"
	file := n.encrypt(t, app, text)
	if found := readShares(t, file).KeyAccess; len(found) != 2 {
		t.Fatalf("found %d shares, expected one for each nation", len(found))
	}
	before := readyPods(t, n.a.namespace, "app.kubernetes.io/component=key-access", 1)

	n.expect(t, app, file, http.StatusForbidden, "a nation does not permit it")
	n.apply(t, n.a.namespace, "policy-a.yaml")
	n.eventually(t, app, file, http.StatusOK, text)
	for _, object := range []string{"keyaccesspolicy/mission-alpha", "keyaccesspeer/nation-b"} {
		_, err := kubectl(t, "", "wait", "--for=condition=Ready", object, "--namespace", n.a.namespace, "--timeout=90s")
		must(t, err)
	}
	n.expectOfA(t, file, "permit", "permit")

	// Nation B is killed. Its share is missing, anybody who is asked.
	n.scale(t, n.b, 0)
	_, err := kubectl(t, "", "delete", "pods", "--selector=app.kubernetes.io/component=key-access", "--namespace", n.b.namespace, "--grace-period=0", "--force")
	must(t, err)
	n.eventually(t, app, file, http.StatusBadGateway, "both nations are needed")
	n.expectOfA(t, file, "permit", "fail", "Unavailable", n.b.host())
	n.scale(t, n.b, 1)
	n.awaitRollout(t, n.b)
	n.eventually(t, app, file, http.StatusOK, text)

	_, err = kubectl(t, n.manifest(t, "policy-a.yaml"), "delete", "--namespace", n.a.namespace, "--filename", "-")
	must(t, err)
	n.eventually(t, app, file, http.StatusForbidden, "a nation does not permit it")
	if after := readyPods(t, n.a.namespace, "app.kubernetes.io/component=key-access", 1); after[0].UID != before[0].UID || after[0].Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the service of nation A was restarted, expected policies to count without that: %+v", after[0].Status)
	}
}

// startApp builds the application and runs it from its manifest.
func (n *nations) startApp(t *testing.T, namespace string) *corev1.Pod {
	t.Helper()
	printed, err := environment.Command(t.Context(), "", os.Stderr, filepath.Join(shared.Repository, "hack", "examples", "build"), "two-nations")
	must(t, err)
	image, archive, _ := strings.Cut(strings.TrimSpace(printed), "\t")
	must(t, shared.cluster.Load(t.Context(), os.Stderr, archive))
	n.idp.Add(issuer.Client{ID: "two-nations", Secret: "secret-of-the-test", Claims: claims()})
	createForNation(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "authorities", Namespace: namespace}, Data: map[string]string{"ca.crt": n.encoded["tls.crt"]}})
	createForNation(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "two-nations", Namespace: namespace}, StringData: map[string]string{"id": "two-nations", "secret": "secret-of-the-test"}})
	manifest := n.manifest(t, "app.yaml")
	const documented = "registry.example/two-nations:v1"
	if !strings.Contains(manifest, documented) {
		t.Fatalf("the manifest has no image of the name %s", documented)
	}
	applyForTest(t, namespace, strings.Replace(manifest, documented, image, 1))
	return &readyPods(t, namespace, "app=two-nations", 1)[0]
}

func (n *nations) scale(t *testing.T, each nation, replicas int) {
	t.Helper()
	_, err := kubectl(t, "", "scale", "deployment/"+each.fullname(), "--namespace", each.namespace, fmt.Sprintf("--replicas=%d", replicas))
	must(t, err)
}

// post sends a body to the application.
func post(t *testing.T, app *corev1.Pod, path string, body []byte) (status int, answer []byte) {
	t.Helper()
	reply, err := (&http.Client{Timeout: time.Minute}).Post("http://"+addressOf(app)+path, "application/octet-stream", bytes.NewReader(body))
	must(t, err)
	defer reply.Body.Close()
	answer, err = io.ReadAll(reply.Body)
	must(t, err)
	return reply.StatusCode, answer
}

func (n *nations) encrypt(t *testing.T, app *corev1.Pod, text string) []byte {
	t.Helper()
	status, file := post(t, app, "/encrypt", []byte(text))
	if status != http.StatusOK {
		t.Fatalf("found the status %d, expected a file: %s", status, file)
	}
	if bytes.Contains(file, []byte(text)) {
		t.Fatal("the file has the text, expected it encrypted")
	}
	return file
}

// decrypts returns an error unless the application answers a file in this way.
func decrypts(t *testing.T, app *corev1.Pod, file []byte, status int, text string) error {
	t.Helper()
	if found, answer := post(t, app, "/decrypt", file); found != status || !strings.Contains(string(answer), text) {
		return fmt.Errorf("found the status %d and %q, expected %d and %q", found, answer, status, text)
	}
	return nil
}

func (n *nations) expect(t *testing.T, app *corev1.Pod, file []byte, status int, text string) {
	t.Helper()
	must(t, decrypts(t, app, file, status, text))
}

func (n *nations) eventually(t *testing.T, app *corev1.Pod, file []byte, status int, text string) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("the application answers with the status %d", status), func() error {
		return decrypts(t, app, file, status, text)
	})
}

// expectOfA asks nation A for both shares. It expects these results: one for nation A's own share, and one for nation B's share
// that contains all given parts.
func (n *nations) expectOfA(t *testing.T, file []byte, own string, other ...string) {
	t.Helper()
	eventually(t, patience, "nation A has asked nation B", func() error {
		results, err := n.askA(t, file)
		if err != nil {
			return err
		}
		if len(results) != 2 || results[0] != own {
			return fmt.Errorf("found %q, expected two results, the first one %q", results, own)
		}
		for _, part := range other {
			if !strings.Contains(results[1], part) {
				return fmt.Errorf("found %q, expected the second one to say %q", results, other)
			}
		}
		return nil
	})
}
