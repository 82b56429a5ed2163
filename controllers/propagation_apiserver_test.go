// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/controllers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
)

// expectEvent waits until an event about the object was recorded whose note has
// the text.
func expectEvent(t *testing.T, object client.Object, kind, reason, text string) {
	t.Helper()
	eventually(t, "there is an event "+reason, func() error {
		var all eventsv1.EventList
		if err := apiServer.List(t.Context(), &all, client.InNamespace(object.GetNamespace())); err != nil {
			return err
		}
		var others []string
		for _, e := range all.Items {
			if e.Regarding.Name == object.GetName() && e.Type == kind && e.Reason == reason && strings.Contains(e.Note, text) {
				return nil
			}
			others = append(others, fmt.Sprintf("%s %s %s: %s", e.Regarding.Name, e.Type, e.Reason, e.Note))
		}
		return fmt.Errorf("found %q", others)
	})
}

func configMap(ns string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: v1alpha1.ProfilesConfigMap}}
}

// numbers reads metrics: "name" or `name{label="value"}` to the value, of a
// histogram the count.
func numbers(t *testing.T, registry *prometheus.Registry, ns string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			name, mine := family.GetName(), true
			for _, label := range metric.Label {
				if label.GetName() == "namespace" {
					mine = label.GetValue() == ns
					continue
				}
				name += " " + label.GetValue()
			}
			if !mine {
				continue
			}
			switch family.GetType() {
			case dto.MetricType_HISTOGRAM:
				out[name] = float64(metric.Histogram.GetSampleCount())
			case dto.MetricType_COUNTER:
				out[name] = metric.Counter.GetValue()
			default:
				out[name] = metric.Gauge.GetValue()
			}
		}
	}
	return out
}

func TestAChangeReachesEveryBrokerAtOnce(t *testing.T) {
	o := start(t)
	ns := namespace(t, nil)
	p := hashing(ns, "orders", "sha3-512")
	create(t, p)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	pods := []*pod{runPod(t, ns), runPod(t, ns), runPod(t, ns)}
	expectStatus(t, p, has{accepted: "True Valid", propagated: "True AllUpdated", pods: 3, updated: 3})
	before := numbers(t, o.metrics, ns)

	begin := time.Now()
	update(t, p, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	expectServed(t, fileOf("orders", "sha-512"), pods...)
	t.Logf("applied to annotated and read: %s", time.Since(begin))
	expectStatus(t, p, has{accepted: "True Valid", propagated: "True AllUpdated", pods: 3, updated: 3, says: "3 of 3 brokers serve it."})
	for _, pod := range pods {
		if found := pod.annotations(); found[len(found)-1] != p.Status.Digest+".1" {
			t.Errorf("annotations of pod %s are %q", pod.object.Name, found)
		}
	}
	expectEvent(t, p, "Normal", "Propagated", "3 of 3 brokers serve it. The last got it ")
	after := numbers(t, o.metrics, ns)
	if after["crypto_broker_operator_pods updated"] != 3 || after["crypto_broker_operator_pods behind"] != 0 || after["crypto_broker_operator_pods unverified"] != 0 {
		t.Errorf("pods are %v", after)
	}
	if n := after["crypto_broker_operator_patches_total 1"] - before["crypto_broker_operator_patches_total 1"]; n != 3 {
		t.Errorf("%v annotations were counted, expected 3", n)
	}
	if n := after["crypto_broker_operator_propagation_duration_seconds"] - before["crypto_broker_operator_propagation_duration_seconds"]; n != 3 {
		t.Errorf("%v durations were counted, expected 3", n)
	}
	for stage, want := range map[string]float64{"written": 1, "annotated": 3, "served": 3} {
		name := "crypto_broker_operator_propagation_stage_duration_seconds " + stage
		if n := after[name] - before[name]; n != want {
			t.Errorf("%v durations of the stage %s were counted, expected %v", n, stage, want)
		}
	}
}

func TestOnlyTheAnnotationOfAPodIsWrittenAndItsSnapshotRemoved(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	p := hashing(ns, "orders", "sha3-512")
	create(t, p)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	pod := runPod(t, ns, func(p *pod) {
		p.object.Annotations = map[string]string{
			"kept":                              "as it is",
			contract.ProfilesSnapshotAnnotation: fileOf("orders", "sha3-512"),
			contract.ProfilesSnapshotSignatureAnnotation: "{}",
		}
	})
	expectStatus(t, p, has{propagated: "True AllUpdated", pods: 1, updated: 1})
	var before corev1.Pod
	if err := apiServer.Get(t.Context(), keyOf(pod), &before); err != nil {
		t.Fatal(err)
	}
	update(t, p, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	expectServed(t, fileOf("orders", "sha-512"), pod)
	var after corev1.Pod
	if err := apiServer.Get(t.Context(), keyOf(pod), &after); err != nil {
		t.Fatal(err)
	}
	delete(after.Annotations, digestAnnotation)
	delete(before.Annotations, contract.ProfilesSnapshotAnnotation)
	delete(before.Annotations, contract.ProfilesSnapshotSignatureAnnotation)
	for _, object := range []*corev1.Pod{&before, &after} {
		object.ResourceVersion, object.ManagedFields = "", nil
		if len(object.Annotations) == 0 {
			object.Annotations = nil
		}
	}
	if before.String() != after.String() {
		t.Errorf("the pod was\n%s\nand is\n%s", before.String(), after.String())
	}
}

func TestABrokerThatIsBehindGetsAnotherValueAtEachTry(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	p := hashing(ns, "orders", "sha3-512")
	create(t, p)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	late, never := runPod(t, ns, ignoring(2)), runPod(t, ns, ignoring(100))
	expectStatus(t, p, has{propagated: "True AllUpdated", pods: 2, updated: 2})
	update(t, p, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	expectServed(t, fileOf("orders", "sha-512"), late)
	expectStatus(t, p, has{propagated: "False Behind", pods: 2, updated: 1, says: "1 still serves an older set after 4 annotations"})
	digest := p.Status.Digest
	if found := late.annotations(); !slices.Equal(found, []string{digest + ".1", digest + ".2", digest + ".3"}) {
		t.Errorf("the late broker got %q", found)
	}
	if found := never.annotations(); !slices.Equal(found, []string{digest + ".1", digest + ".2", digest + ".3", digest + ".4"}) {
		t.Errorf("the broker that never followed got %q", found)
	}
	expectEvent(t, configMap(ns), "Warning", "Behind", "1 still serves an older set")
	never.load() // its kubelet's own resync
	expectStatus(t, p, has{propagated: "True AllUpdated", pods: 2, updated: 2})
	expectEvent(t, configMap(ns), "Normal", "Recovered", "2 of 2 brokers serve it.")
}

func TestAProfileThatDidNotChangeGetsNoEventWhenABrokerIsLate(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	changed, other := hashing(ns, "changed", "sha3-512"), hashing(ns, "other", "sha3-512")
	create(t, changed)
	create(t, other)
	expectFile(t, ns, fileOf("changed", "sha3-512", "other", "sha3-512"))
	// A profile that was propagated before there were pods gets no event when the first one comes.
	for _, p := range []*v1alpha1.CryptoProfile{changed, other} {
		expectStatus(t, p, has{propagated: "True NoPods"})
	}
	late := runPod(t, ns, ignoring(100))
	for _, p := range []*v1alpha1.CryptoProfile{changed, other} {
		expectStatus(t, p, has{propagated: "True AllUpdated", pods: 1, updated: 1})
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	counted := count(ctx, t, ns)
	update(t, changed, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	for _, p := range []*v1alpha1.CryptoProfile{changed, other} {
		expectStatus(t, p, has{propagated: "False Behind", pods: 1})
	}
	late.load() // its kubelet's own resync
	for _, p := range []*v1alpha1.CryptoProfile{other, changed} {
		expectStatus(t, p, has{propagated: "True AllUpdated", pods: 1, updated: 1})
	}
	expectEvent(t, changed, "Normal", "Propagated", "Generation 2: ")
	expectEvent(t, configMap(ns), "Normal", "Recovered", "")
	if n := counted()["event on other"]; n != 0 {
		t.Errorf("found %d events on the profile that did not change, expected none", n)
	}
}

func TestABrokerThatCannotBeAskedIsUnverifiedAndAnnotatedOnce(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	p := hashing(ns, "orders", "sha3-512")
	create(t, p)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	reached := runPod(t, ns)
	hidden := runPod(t, ns, silent)
	onHost := runPod(t, ns, func(p *pod) { p.object.Spec.HostNetwork = true })
	off := runPod(t, ns, func(p *pod) { p.object.Spec.InitContainers[0].Args = nil })
	expectStatus(t, p, has{propagated: "Unknown Unverified", pods: 4, updated: 1, unverified: 3, says: `add a NetworkPolicy that allows ingress to TCP port 9470 of these pods, or to the port in their annotation cryptobroker.io/metrics-port, from namespace "crypto-broker-system"`})
	update(t, p, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	expectServed(t, fileOf("orders", "sha-512"), reached, hidden, onHost, off)
	expectStatus(t, p, has{propagated: "Unknown Unverified", pods: 4, updated: 1, unverified: 3})
	for _, pod := range []*pod{hidden, onHost, off} {
		if found := pod.annotations(); found[len(found)-1] != p.Status.Digest+".1" {
			t.Errorf("a broker that can't be asked got %q", found)
		}
	}
	if onHost.asked+off.asked > 0 {
		t.Error("a broker that must not be asked was asked")
	}
	// The event comes when the first of them is known. That may be before the last one runs.
	expectEvent(t, configMap(ns), "Warning", "Unverified", "could not be asked")
}

func TestABrokerThatRefusesTheSetIsReported(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	p := hashing(ns, "orders", "sha3-512")
	create(t, p)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	pod := runPod(t, ns, ignoring(100))
	expectStatus(t, p, has{propagated: "True AllUpdated", pods: 1, updated: 1})
	pod.mu.Lock()
	pod.answer.Reason = string(directory.SetRejected)
	pod.mu.Unlock()
	update(t, p, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	expectStatus(t, p, has{propagated: "False RefusedByBroker", pods: 1})
}

func TestTheNextLeaderAsksBeforeItWrites(t *testing.T) {
	first := start(t)
	ns := namespace(t, nil)
	p := hashing(ns, "orders", "sha3-512")
	create(t, p)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	current, behind := runPod(t, ns), runPod(t, ns)
	expectStatus(t, p, has{propagated: "True AllUpdated", pods: 2, updated: 2})
	first.stop()
	behind.mu.Lock()
	behind.answer.Digest = profile.Digest(nil)
	behind.mu.Unlock()
	start(t)
	expectServed(t, fileOf("orders", "sha3-512"), behind)
	if found := current.annotations(); len(found) > 0 {
		t.Errorf("a broker that was up to date got %q", found)
	}
	expectStatus(t, p, has{propagated: "True AllUpdated", pods: 2, updated: 2})
}

func TestWithoutAnnotationsASetComesAtTheKubeletsPace(t *testing.T) {
	start(t, func(o *controllers.Options) { o.Annotate = false })
	ns := namespace(t, nil)
	p := hashing(ns, "orders", "sha3-512")
	create(t, p)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	pod := runPod(t, ns)
	expectStatus(t, p, has{propagated: "True AllUpdated", pods: 1, updated: 1})
	update(t, p, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	expectStatus(t, p, has{propagated: "False InProgress", pods: 1})
	pod.load() // the kubelet's resync
	expectStatus(t, p, has{propagated: "True AllUpdated", pods: 1, updated: 1})
	if found := pod.annotations(); len(found) > 0 {
		t.Errorf("the pod got %q", found)
	}
}

func TestAPodThatWaitsForItsFirstSetIsWoken(t *testing.T) {
	start(t)
	ns := namespace(t, nil)
	pod := runPod(t, ns)
	started := false
	pod.status(func(s *corev1.PodStatus) { s.InitContainerStatuses[0].Started = &started })
	create(t, hashing(ns, "orders", "sha3-512"))
	expectServed(t, fileOf("orders", "sha3-512"), pod)
}

func TestClusterProfilesSumOverTheirNamespaces(t *testing.T) {
	o := start(t)
	labels := map[string]string{"tier": "sum"}
	first, second := namespace(t, labels), namespace(t, labels)
	p := clusterHashing("sum", "sha3-512", labels)
	create(t, p)
	expectFile(t, first, fileOf("sum", "sha3-512"))
	expectFile(t, second, fileOf("sum", "sha3-512"))
	pods := []*pod{runPod(t, first), runPod(t, second), runPod(t, second, silent)}
	expectStatus(t, p, has{accepted: "True Valid", propagated: "Unknown Unverified", pods: 3, updated: 2, unverified: 1, namespaces: 2})
	update(t, p, func(p *v1alpha1.ClusterCryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	expectServed(t, fileOf("sum", "sha-512"), pods...)
	if err := apiServer.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second}}); err != nil {
		t.Fatal(err)
	}
	expectStatus(t, p, has{accepted: "True Valid", propagated: "True AllUpdated", pods: 1, updated: 1, namespaces: 1})
	eventually(t, "no metric is left of the namespace", func() error {
		for name := range numbers(t, o.metrics, second) {
			if strings.HasPrefix(name, "crypto_broker_operator_pods") {
				return fmt.Errorf("found %s", name)
			}
		}
		return nil
	})
}

func TestBrokersThatCannotBeReachedHoldUpNoOthers(t *testing.T) {
	const unreachable = 600
	var lost atomic.Int64 // questions to brokers that can't be reached
	o := start(t, func(o *controllers.Options) {
		ask := o.Ask
		o.Ask = func(ctx context.Context, at netip.AddrPort) (confirm.Answer, error) {
			if at.Addr().IsLoopback() {
				return ask(ctx, at)
			}
			lost.Add(1)
			<-ctx.Done() // like a NetworkPolicy that drops packets
			return confirm.Answer{}, ctx.Err()
		}
	})
	ns := namespace(t, nil)
	p := hashing(ns, "orders", "sha3-512")
	create(t, p)
	expectFile(t, ns, fileOf("orders", "sha3-512"))
	var made errgroup.Group
	made.SetLimit(16)
	for i := range unreachable {
		made.Go(func() error { return makeUnreachable(t.Context(), ns, i) })
	}
	if err := made.Wait(); err != nil {
		t.Fatal(err)
	}
	pods := []*pod{runPod(t, ns), runPod(t, ns), runPod(t, ns)}
	expectStatus(t, p, has{accepted: "True Valid", propagated: "Unknown Unverified", pods: unreachable + 3, updated: 3, unverified: unreachable})

	confirmed := func() float64 {
		return numbers(t, o.metrics, ns)["crypto_broker_operator_propagation_duration_seconds"]
	}
	before, confirmedBefore := lost.Load(), confirmed()
	update(t, p, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-512" })
	begin := time.Now()
	eventually(t, "three brokers have confirmed", func() error {
		if n := confirmed() - confirmedBefore; n < 3 {
			return fmt.Errorf("found %v", n)
		}
		return nil
	})
	t.Logf("confirmed after %s", time.Since(begin))
	expectServed(t, fileOf("orders", "sha-512"), pods...)
	// Without the change, the operator would ask the three only after all others, at least twice.
	if asked := lost.Load() - before; asked >= unreachable {
		t.Errorf("until three brokers had confirmed, %d questions went to those that can't be reached, expected fewer than %d", asked, unreachable)
	}
}

// makeUnreachable makes a pod with a broker at an address where nothing answers.
func makeUnreachable(ctx context.Context, namespace string, i int) error {
	always, started := corev1.ContainerRestartPolicyAlways, true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("unreachable-%d", i)},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{
				Name: contract.BrokerContainer, Image: "broker", RestartPolicy: &always, Args: []string{"--status-address=:9470"},
			}},
			Containers: []corev1.Container{{Name: "app", Image: "app"}},
		},
	}
	if err := apiServer.Create(ctx, p); err != nil {
		return err
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.HostIP = "10.0.0.1"
	p.Status.PodIP = netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}).String()
	p.Status.HostIPs, p.Status.PodIPs = []corev1.HostIP{{IP: p.Status.HostIP}}, []corev1.PodIP{{IP: p.Status.PodIP}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: contract.BrokerContainer, ContainerID: "test://1", Started: &started,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}
	return apiServer.Status().Update(ctx, p)
}
