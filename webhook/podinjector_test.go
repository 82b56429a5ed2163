// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

func apiServerWith(t testing.TB, objects ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(fixture.Scheme(t)).WithObjects(objects...).Build()
}

// injectorWith returns an injector with the given cache and API server.
func injectorWith(t *testing.T, cache, live client.Reader) *podInjector {
	t.Helper()
	return newPodInjector(admission.NewDecoder(fixture.Scheme(t)), cache, live, Options{
		Template: testTemplate(), OperatorNamespace: "crypto-broker-system",
	})
}

func creation(t *testing.T, pod *corev1.Pod, namespace string) admission.Request {
	t.Helper()
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create,
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Namespace: namespace,
		Object:    runtime.RawExtension{Raw: fixture.JSON(t, pod)},
	}}
}

func TestWhichPodsAreInjected(t *testing.T) {
	const mistaken = `metadata.annotations[cryptobroker.io/inject]: found "yes", expected "true" to get a broker or "false" to get none`
	tests := map[string]struct {
		pod       *corev1.Pod
		namespace string
		result    string
		reason    string
		warnings  []string
	}{
		"one that asks":                              {pod: fixture.PodWith(), namespace: "shop", result: resultInjected},
		"one that does not ask":                      {pod: fixture.Silent(), namespace: "shop", result: resultSkipped, reason: "not asked"},
		"one that declines":                          {pod: fixture.PodWith(fixture.Asking("false")), namespace: "shop", result: resultSkipped, reason: "declined"},
		"one that asks wrongly":                      {pod: fixture.PodWith(fixture.Asking("yes")), namespace: "shop", result: resultRefused, reason: mistaken},
		"one of a labelled namespace":                {pod: fixture.Silent(), namespace: "labelled", result: resultInjected},
		"one of a labelled namespace that declines":  {pod: fixture.PodWith(fixture.Asking("false")), namespace: "labelled", result: resultSkipped, reason: "declined"},
		"one of a labelled namespace that is unsure": {pod: fixture.PodWith(fixture.Asking("yes")), namespace: "labelled", result: resultRefused, reason: mistaken},
		"one of a namespace with another value":      {pod: fixture.Silent(), namespace: "disabled", result: resultSkipped, reason: "not asked"},
		"one of a namespace without profiles": {
			pod: fixture.PodWith(), namespace: "new", result: resultInjected,
			warnings: []string{`namespace "new" has no crypto profile yet: the pod waits until it has one, and its broker is restarted every ten minutes`},
		},
		"one of a namespace whose last profile is gone": {
			pod: fixture.PodWith(), namespace: "emptied", result: resultInjected,
			warnings: []string{`namespace "emptied" has no crypto profile yet: the pod waits until it has one, and its broker is restarted every ten minutes`},
		},
		"one of the operator":   {pod: fixture.PodWith(), namespace: "crypto-broker-system", result: resultSkipped, reason: "excluded namespace"},
		"one of the system":     {pod: fixture.PodWith(), namespace: "kube-system", result: resultSkipped, reason: "excluded namespace"},
		"one of the node lease": {pod: fixture.PodWith(), namespace: "kube-node-lease", result: resultSkipped, reason: "excluded namespace"},
		"one for Windows that asks": {
			pod: fixture.PodWith(func(pod *corev1.Pod) { pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }), namespace: "shop",
			result: resultSkipped, reason: "Windows pod", warnings: []string{"a Windows pod gets no broker: the broker runs on Linux only"},
		},
		"one with a reserved name": {
			pod: fixture.PodWith(fixture.With(corev1.Volume{Name: contract.SocketVolume})), namespace: "shop", result: resultRefused,
			reason: `spec.volumes[0].name: found "crypto-broker-socket" without the annotation cryptobroker.io/injected; ` + reserved,
		},
	}
	server := apiServerWith(t,
		fixture.Namespace("shop", nil), fixture.ProfilesIn("shop"), fixture.Namespace("labelled", fixture.Enabled), fixture.ProfilesIn("labelled"),
		fixture.Namespace("disabled", map[string]string{contract.InjectionLabel: "disabled"}), fixture.Namespace("new", nil),
		fixture.Namespace("emptied", nil), fixture.SetIn("emptied", "[]\n"))
	injector := injectorWith(t, server, server)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := count(t, test.result)
			response := injector.Handle(t.Context(), creation(t, test.pod, test.namespace))
			if allowed := test.result != resultRefused; response.Allowed != allowed {
				t.Errorf("allowed is %t: %v", response.Allowed, response.Result)
			}
			if test.result == resultRefused && (response.Result.Message != test.reason || response.Result.Code != http.StatusForbidden) {
				t.Errorf("refused with %d %q, expected %d %q", response.Result.Code, response.Result.Message, http.StatusForbidden, test.reason)
			}
			if injected := len(response.Patches) > 0; injected != (test.result == resultInjected) {
				t.Errorf("injected is %t", injected)
			}
			if diff := cmp.Diff(test.warnings, response.Warnings); diff != "" {
				t.Errorf("other warnings than expected (-want +found):\n%s", diff)
			}
			if found := response.AuditAnnotations["result"]; found != test.result {
				t.Errorf("the audit log says %q, expected %q", found, test.result)
			}
			if found := response.AuditAnnotations["reason"]; found != test.reason {
				t.Errorf("the audit log says %q, expected %q", found, test.reason)
			}
			if after := count(t, test.result); after != before+1 {
				t.Errorf("the metric went from %v to %v, expected one more", before, after)
			}
		})
	}
}

func TestOnlyTheCreationOfPodsIsAnswered(t *testing.T) {
	tests := map[string]func(*admission.Request){
		"an update":             func(r *admission.Request) { r.Operation = admissionv1.Update },
		"a deletion":            func(r *admission.Request) { r.Operation = admissionv1.Delete },
		"a subresource of pods": func(r *admission.Request) { r.SubResource = "ephemeralcontainers" },
		"another kind":          func(r *admission.Request) { r.Kind.Kind = "PodTemplate" },
	}
	server := apiServerWith(t, fixture.Namespace("shop", nil), fixture.ProfilesIn("shop"))
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			request := creation(t, fixture.PodWith(), "shop")
			change(&request)
			response := injectorWith(t, server, server).Handle(t.Context(), request)
			if !response.Allowed || len(response.Patches) > 0 {
				t.Errorf("allowed %t with the patch %v, expected allowed without one", response.Allowed, response.Patches)
			}
		})
	}
}

func TestRefusedPodsAreCountedByAReason(t *testing.T) {
	const hostile = "cryptobroker.io/hostile"
	server := apiServerWith(t, fixture.Namespace("shop", nil), fixture.ProfilesIn("shop"))
	counts := func() map[string]float64 {
		series := make(chan prometheus.Metric, 100)
		injectionRefusals.Collect(series)
		close(series)
		found := map[string]float64{}
		for one := range series {
			var metric dto.Metric
			if err := one.Write(&metric); err != nil {
				t.Fatal(err)
			}
			found[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
		}
		return found
	}
	for sentence, test := range map[string]struct {
		reason string
		change func(*corev1.Pod)
	}{
		"an unknown annotation":         {"annotation", func(p *corev1.Pod) { p.Annotations[hostile] = hostile }},
		"a wrong value":                 {"annotation", func(p *corev1.Pod) { p.Annotations[contract.CPULimitAnnotation] = hostile }},
		"a wrong answer to the request": {"annotation", func(p *corev1.Pod) { p.Annotations[contract.InjectAnnotation] = hostile }},
		"a volume of the broker": {"reserved", func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: contract.SocketVolume})
		}},
		"a mount where the socket is": {"pod", func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: hostile, MountPath: contract.SocketDir}}
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			before := counts()
			before[test.reason]++
			response := injectorWith(t, server, server).Handle(t.Context(), creation(t, fixture.PodWith(fixture.Asking("true"), test.change), "shop"))
			if response.Allowed {
				t.Fatal("the pod is admitted")
			}
			if diff := cmp.Diff(before, counts()); diff != "" {
				t.Errorf("%s: other counts than expected (-want +found):\n%s", response.Result.Message, diff)
			}
		})
	}
}

func TestAPodThatCannotBeReadIsRefused(t *testing.T) {
	server := apiServerWith(t, fixture.Namespace("shop", nil))
	request := creation(t, fixture.PodWith(), "shop")
	request.Object.Raw = []byte(`{"spec": 1}`)
	response := injectorWith(t, server, server).Handle(t.Context(), request)
	if response.Allowed || response.Result.Code != http.StatusBadRequest || !strings.HasPrefix(response.Result.Message, "the pod cannot be read: ") {
		t.Errorf("answered %v, expected 400 and a sentence", response.Result)
	}
}

func TestADryRunIsAnsweredLikeARun(t *testing.T) {
	server := apiServerWith(t, fixture.Namespace("shop", nil), fixture.ProfilesIn("shop"))
	request := creation(t, fixture.PodWith(), "shop")
	run := injectorWith(t, server, server).Handle(t.Context(), request)
	request.DryRun = ptr.To(true)
	dry := injectorWith(t, server, server).Handle(t.Context(), request)
	if diff := cmp.Diff(run, dry); diff != "" {
		t.Errorf("(-run +dry run):\n%s", diff)
	}
}

// snapshotIn is the annotation that a response's patch sets.
func snapshotIn(t *testing.T, response admission.Response) string {
	t.Helper()
	if !response.Allowed {
		t.Fatalf("refused: %v", response.Result)
	}
	for _, operation := range response.Patches {
		if strings.HasSuffix(operation.Path, "profiles-snapshot") {
			return operation.Value.(string)
		}
		if annotations, ok := operation.Value.(map[string]string); ok {
			return annotations[contract.ProfilesSnapshotAnnotation]
		}
	}
	return ""
}

func count(t *testing.T, result string) float64 {
	t.Helper()
	var metric dto.Metric
	if err := injections.WithLabelValues(result).Write(&metric); err != nil {
		t.Fatal(err)
	}
	return metric.GetCounter().GetValue()
}

func TestAResponseIsSmall(t *testing.T) {
	server := apiServerWith(t, fixture.Namespace("shop", nil), fixture.ProfilesIn("shop"))
	response := injectorWith(t, server, server).Handle(t.Context(), creation(t, fixture.PodWith(), "shop"))
	patch, err := json.Marshal(response.Patches)
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Patches) > 12 {
		t.Errorf("the patch has %d operations, expected one for each thing added: %s", len(response.Patches), patch)
	}
}
