// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package collector_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

// runPod makes a pod whose broker is a process of the test, and returns its name. Like a kubelet, it writes the ConfigMap into the
// broker's directory when the annotation of the pod changes.
func (c *cluster) runPod(t *testing.T, namespace string) string {
	t.Helper()
	b := startBroker(t, nil)
	var listening struct{ Status string }
	for text := range strings.Lines(b.stderr.String()) {
		if strings.Contains(text, `"msg":"listening"`) {
			if err := json.Unmarshal([]byte(text), &listening); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, port, _ := strings.Cut(listening.Status, ":")
	always, started := corev1.ContainerRestartPolicyAlways, true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "app-"},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{
				Name: contract.BrokerContainer, Image: "broker", RestartPolicy: &always,
				Args: []string{"--profiles-dir=/etc/crypto-broker/profiles", "--status-address=:" + port},
			}},
			Containers: []corev1.Container{{Name: "app", Image: "app"}},
		},
	}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	c.followAnnotation(t, pod, filepath.Join(filepath.Dir(b.socket), "..", ".."))
	before := pod.DeepCopy()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "127.0.0.1", HostIP: "127.0.0.2",
		PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}}, HostIPs: []corev1.HostIP{{IP: "127.0.0.2"}},
		InitContainerStatuses: []corev1.ContainerStatus{{
			Name: contract.BrokerContainer, ContainerID: "test://1", Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		}},
	}
	if err := c.Status().Patch(t.Context(), pod, client.StrategicMergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	return pod.Name
}

// followAnnotation writes the set of the namespace into a folder when the annotation of a pod
// changes, until the test ends.
func (c *cluster) followAnnotation(t *testing.T, pod *corev1.Pod, dir string) {
	ctx, cancel := context.WithCancel(context.Background())
	events, err := c.Watch(ctx, &corev1.PodList{}, client.InNamespace(pod.Namespace), client.MatchingFields{"metadata.name": pod.Name})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		seen := ""
		for event := range events.ResultChan() {
			object, ok := event.Object.(*corev1.Pod)
			if !ok || object.Annotations[contract.ProfilesDigestAnnotation] == seen {
				continue
			}
			seen = object.Annotations[contract.ProfilesDigestAnnotation]
			var set corev1.ConfigMap
			err := c.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: v1alpha1.ProfilesConfigMap}, &set)
			if err == nil {
				err = replace(filepath.Join(dir, profile.FileName), set.Data[profile.FileName])
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		events.Stop()
		<-done
	})
}

// replace replaces the content of a file in one step.
func replace(file, content string) error {
	if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// expectTrace waits until the collector has the spans of a change, and returns them by their names.
// all of them have to be in one trace.
func expectTrace(t *testing.T, from *sink, attributes map[string]string, counts map[string]int) map[string][]span {
	t.Helper()
	var spans map[string][]span
	apiserver.Eventually(t, fmt.Sprintf("the spans of %v are there", attributes), func() error {
		all := from.receivedSpans()
		traces := map[string]bool{}
		for _, s := range all {
			matches := s.Name == "admit profile"
			for key, value := range attributes {
				matches = matches && s.is(key) == value
			}
			if matches {
				traces[s.TraceID] = true
			}
		}
		if len(traces) != 1 {
			return fmt.Errorf("found %d traces that begin with its admission, expected one", len(traces))
		}
		spans = map[string][]span{}
		found := map[string]int{}
		for _, s := range all {
			if traces[s.TraceID] {
				spans[s.Name] = append(spans[s.Name], s)
				found[s.Name]++
			}
		}
		// The API server asks again if a status was written while it deleted the profile.
		found["admit profile"] = min(found["admit profile"], 1)
		if !maps.Equal(found, counts) {
			return fmt.Errorf("found the spans %v, expected %v", found, counts)
		}
		return nil
	})
	return spans
}

func TestOneTraceShowsAChangeFromItsAdmissionToTheLastPod(t *testing.T) {
	to := newSink(t)
	c := startCluster(t, "http://"+startCollector(t, to, "").grpc)
	const namespace = "shop"
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	orders := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "orders"}}
	orders.Spec.API.HashData = &v1alpha1.HashData{HashAlg: "sha-256"}
	if err := c.Create(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	expectTrace(t, to, map[string]string{"crypto_broker.profile.generation": "1"},
		map[string]int{"admit profile": 1, "propagate profile": 1, "compile set": 1, "write ConfigMap": 1})
	pods := []string{c.runPod(t, namespace), c.runPod(t, namespace), c.runPod(t, namespace)}
	c.expectUpdated(t, orders, int32(len(pods)))

	apiserver.Eventually(t, "a change to a profile that does not compile is refused", func() error {
		refused := orders.DeepCopy()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(refused), refused); err != nil {
			return err
		}
		refused.Spec = wrongSpec()
		if err := c.Update(t.Context(), refused); err == nil || !strings.Contains(err.Error(), "denied the request") {
			return fmt.Errorf("it is answered by %w", err)
		}
		return nil
	})
	apiserver.Eventually(t, "the profile is changed", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(orders), orders); err != nil {
			return err
		}
		orders.Spec.API.HashData.HashAlg = "sha-512"
		if err := c.Update(t.Context(), orders.DeepCopy(), client.DryRunAll); err != nil {
			return err
		}
		return c.Update(t.Context(), orders)
	})
	accepted := map[string]string{"crypto_broker.profile.generation": "2", "crypto_broker.admission.result": "accepted"}
	spans := expectTrace(t, to, accepted, map[string]int{
		"admit profile": 1, "propagate profile": 1, "compile set": 1, "write ConfigMap": 1, "annotate pods": 1, "serve set": 3,
	})
	admission, propagation := spans["admit profile"][0], spans["propagate profile"][0]
	if admission.ParentSpanID != "" || propagation.ParentSpanID != admission.SpanID {
		t.Errorf("the parent of the propagation is %q, expected the admission %q, which has none", propagation.ParentSpanID, admission.SpanID)
	}
	if admission.resource["service.name"] != "crypto-broker-operator" || admission.resource["k8s.pod.name"] == propagation.resource["k8s.pod.name"] {
		t.Errorf("the admission is of %v and the propagation of %v, expected two replicas of the operator", admission.resource, propagation.resource)
	}
	for _, name := range []string{"compile set", "write ConfigMap", "annotate pods", "serve set"} {
		for _, s := range spans[name] {
			if s.ParentSpanID != propagation.SpanID || s.is("k8s.namespace.name") != namespace {
				t.Errorf("%q is a span of %q below %q, expected %q below the propagation %q", name, s.is("k8s.namespace.name"), s.ParentSpanID, namespace, propagation.SpanID)
			}
			if s.StartTimeUnixNano < propagation.StartTimeUnixNano || s.EndTimeUnixNano > propagation.EndTimeUnixNano || s.EndTimeUnixNano < s.StartTimeUnixNano {
				t.Errorf("%q is from %s to %s, expected times within the propagation, from %s to %s", name, s.StartTimeUnixNano, s.EndTimeUnixNano, propagation.StartTimeUnixNano, propagation.EndTimeUnixNano)
			}
		}
	}
	var served []string
	for _, s := range spans["serve set"] {
		served = append(served, s.is("k8s.pod.name"))
	}
	slices.Sort(pods)
	if slices.Sort(served); !slices.Equal(served, pods) {
		t.Errorf("the pods %q have spans, expected %q", served, pods)
	}
	if propagation.is("crypto_broker.pods.confirmed") != "3" || propagation.Status.Code != 0 {
		t.Errorf("the propagation has the attributes %v and the status %v", propagation.Attributes, propagation.Status)
	}
	expectTrace(t, to, map[string]string{"crypto_broker.admission.result": "refused", "crypto_broker.admission.reason": "invalid"}, map[string]int{"admit profile": 1})

	if err := c.Delete(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	expectTrace(t, to, map[string]string{"crypto_broker.profile.deleted": "true"}, map[string]int{
		"admit profile": 1, "propagate profile": 1, "compile set": 1, "write ConfigMap": 1, "annotate pods": 1, "serve set": 3,
	})
}
