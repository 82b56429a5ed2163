// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers/brokerstest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/dryrun"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/explain"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
)

// said is the answer of a broker, or the reason why it gives none.
type said struct {
	answer string
	err    error
}

func (s said) DoRaw(context.Context) ([]byte, error) { return []byte(s.answer), s.err }

func (s said) Stream(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(s.answer)), s.err
}

// ofDeployment returns a pod of a Deployment of the same name. Its broker has started.
func ofDeployment(name string) *corev1.Pod {
	return brokerstest.BrokerPod(func(p *corev1.Pod) {
		p.Name, p.Labels = name, map[string]string{"app": name}
		p.Annotations = map[string]string{contract.InjectAnnotation: "true"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: name, UID: types.UID(name), Controller: new(true)}}
	})
}

// answering returns a cluster whose operator injects. Its brokers give these answers, by the names of their pods and Deployments.
func answering(answers map[string]said) *fake.Clientset {
	objects := []runtime.Object{
		namespaceNamed("shop"), operatorWebhook(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: v1alpha1.ProfilesConfigMap}, Data: map[string]string{profile.FileName: "set"}},
	}
	for name := range answers {
		objects = append(objects, ofDeployment(name), stuckDeployment(name, func(d *appsv1.Deployment) { d.Status.Conditions = nil }))
	}
	client := fake.NewClientset(objects...)
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		pod.Spec.InitContainers = brokerstest.BrokerPod().Spec.InitContainers
		return true, pod, nil
	})
	client.AddProxyReactor("pods", func(action clienttesting.Action) (bool, rest.ResponseWrapper, error) {
		return true, answers[action.(clienttesting.ProxyGetAction).GetName()], nil
	})
	return client
}

// saying returns the answer of a broker that serves a set, with a reason.
func saying(set string, reason directory.Reason) said {
	return said{answer: fmt.Sprintf(`{"digest":%q,"revision":7,"since":"2026-11-20T12:00:00Z","reason":%q}`, profile.Digest([]byte(set)), reason)}
}

func TestABrokerThatDoesNotServeWhatItShouldIsExplainedWithTheWayOut(t *testing.T) {
	for sentence, test := range map[string]struct {
		said said
		fine bool
		says []string
	}{
		"it serves the set": {saying("set", directory.Loaded), true, []string{"has a broker, as it should.\n", "it serves the set of the namespace, "}},
		"the signing key is another": {saying("older", directory.SignatureRejected), false, []string{
			"has a broker, as it should, which refuses the profiles of its namespace.",
			"because no key that the broker trusts has signed it (SignatureRejected)", "as after its Secret was deleted. New pods trust that key.",
			"Restart it: kubectl crypto-broker restart deployment/orders -n shop\n",
			"To restart all such workloads, one at a time: kubectl crypto-broker restart --refused -n shop\n",
		}},
		"the signing key is another, and the profiles are the same": {saying("set", directory.SignatureRejected), false, []string{"kubectl crypto-broker restart --refused -n shop\n"}},
		"the set is older than one that it served":                  {saying("older", directory.RevisionRejected), false, []string{"it refuses the set of the namespace (RevisionRejected)", "Its log says why: kubectl logs orders -n shop -c crypto-broker\n"}},
		"it does not serve all profiles":                            {saying("set", directory.ProfilesRejected), false, []string{"without some profiles that it can't read (ProfilesRejected)", "kubectl logs orders -n shop -c crypto-broker\n"}},
		"it serves an older set":                                    {saying("older", directory.Loaded), false, []string{"which serves an older set of profiles.", "kubectl describe cprof,ccprof -n shop\n"}},
		"it could not be asked":                                     {said{err: errors.New("no route")}, true, []string{"what it serves is not known: the broker did not answer: no route"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			client := answering(map[string]said{"orders": test.said})
			trial := dryrun.Trial{Client: client, Warnings: &dryrun.Warnings{}}
			var pod, workload bytes.Buffer
			for _, err := range []error{
				foundUnless(explain.Pod(t.Context(), trial, ofDeployment("orders"), &pod)),
				foundUnless(explain.Workload(t.Context(), trial, parsed(t, "deployment/orders"), &workload)),
			} {
				if want := map[bool]error{true: nil, false: errFound}[test.fine]; !errors.Is(err, want) {
					t.Errorf("found the error %v, expected %v", err, want)
				}
			}
			for _, says := range test.says {
				if !strings.Contains(pod.String(), says) {
					t.Errorf("%q is not in\n%s", says, &pod)
				}
			}
			if says := test.says[len(test.says)-1]; !strings.Contains(workload.String(), says) {
				t.Errorf("%q is not in\n%s", says, &workload)
			}
		})
	}
}

func parsed(t *testing.T, name string) workload.Workload {
	t.Helper()
	w, err := workload.Parse(name, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWhatIsRestartedForRefusedSetsIsWhatRefusesThemForTheirSignature(t *testing.T) {
	var out, notes bytes.Buffer
	client := answering(map[string]said{
		"older": saying("older", directory.SignatureRejected), "same": saying("set", directory.SignatureRejected),
		"fine": saying("set", directory.Loaded), "behind": saying("older", directory.Loaded),
		"newest": saying("older", directory.RevisionRejected), "broken": saying("older", directory.SetRejected),
		"silent": {err: errors.New("no route")},
	})
	r := restarter{client: client, out: &out, errs: &notes, forBroker: true}
	all, unknown, err := r.find(t.Context(), "shop", concerned{refused: true})
	if err != nil || len(all) != 2 || all[0].Name != "older" || all[1].Name != "same" {
		t.Errorf("found %v, %v, expected older and same", all, err)
	}
	if want := "note: not every broker could be asked, so workloads may be missing here: pod shop/silent: the broker did not answer: no route\n"; !unknown || notes.String() != want {
		t.Errorf("unknown is %t, noted %q, expected %q", unknown, &notes, want)
	}
	if err := r.check(t.Context(), all); err != nil {
		t.Error(err)
	}
}
