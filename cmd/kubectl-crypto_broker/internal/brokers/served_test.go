// SPDX-License-Identifier: Apache-2.0

package brokers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers/brokerstest"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// proxy answers like an API server for one pod, and for the ConfigMap of its namespace if there is one. A real API server does not
// proxy to addresses of this machine, where the broker of a test would be. test/e2e asks a real broker through a real API server.
func proxy(t *testing.T, status int, answer string) kubernetes.Interface {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/http:orders:9470/proxy/profiles", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	})
	for namespace, file := range map[string]string{"shop": "set", "emptied": "[]\n"} {
		mux.HandleFunc("GET /api/v1/namespaces/"+namespace+"/configmaps/"+v1alpha1.ProfilesConfigMap, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(&corev1.ConfigMap{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				Data:     map[string]string{profile.FileName: file},
			}); err != nil {
				t.Error(err)
			}
		})
	}
	mux.HandleFunc("GET /api/v1/namespaces/empty/configmaps/"+v1alpha1.ProfilesConfigMap, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// waits makes the broker's container wait for a reason, after it has ended in the given way.
func waits(reason string, last *corev1.ContainerStateTerminated) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{
			Name:                 contract.BrokerContainer,
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "for a reason"}},
			LastTerminationState: corev1.ContainerState{Terminated: last},
		}}
	}
}

// unscheduled removes the node of the pod.
func unscheduled(p *corev1.Pod) {
	p.Spec.NodeName = ""
	p.Status = corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "Insufficient memory."}}}
}

func TestABrokerSaysWhatItServes(t *testing.T) {
	current, older := profile.Digest([]byte("set")), profile.Digest([]byte("older"))
	said := func(digest, reason string) string {
		return fmt.Sprintf(`{"digest":%q,"revision":7,"since":"2026-11-20T12:00:00Z","reason":%q}`, digest, reason)
	}
	tests := map[string]struct {
		status int
		answer string
		pod    func(*corev1.Pod)
		set    string
		note   string
	}{
		"the namespace's set":                             {200, said(current, "Loaded"), nil, SetUpdated, ""},
		"that without some profiles":                      {200, said(current, "ProfilesRejected"), nil, SetPartial, ""},
		"an older one":                                    {200, said(older, "Loaded"), nil, SetBehind, ""},
		"an older one, and refused a newer":               {200, said(older, "SetRejected"), nil, SetRefused, ""},
		"an older one without some profiles":              {200, said(older, "ProfilesRejected"), nil, SetBehind, ""},
		"an older one, and refused a signature":           {200, said(older, "SignatureRejected"), nil, SetRefused, ""},
		"the namespace's set, and refuses its signature":  {200, said(current, "SignatureRejected"), nil, SetRefused, ""},
		"something that no broker says":                   {200, `{"digest":"x"}`, nil, SetUnknown, "not the expected JSON"},
		"more than a broker says":                         {200, strings.Repeat(" ", confirm.MaxBody) + said(current, "Loaded"), nil, SetUnknown, "not the expected JSON"},
		"nothing, since nobody may ask":                   {403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, nil, SetUnknown, "needs the right to get pods/proxy"},
		"nothing, since it can't be reached":              {503, `no route`, nil, SetUnknown, "the broker did not answer"},
		"nothing, since it has no port":                   {200, "", func(p *corev1.Pod) { p.Spec.InitContainers[0].Args = nil }, SetUnknown, "no status port"},
		"nothing, since it is on the network of its node": {200, "", func(p *corev1.Pod) { p.Spec.HostNetwork = true }, SetUnknown, "no status port"},
		"nothing, since it has not started":               {200, "", func(p *corev1.Pod) { p.Status.InitContainerStatuses = nil }, SetStarting, "read no set yet"},
		"nothing, since its image can't be pulled":        {200, "", waits("ImagePullBackOff", nil), SetStarting, "waits with ImagePullBackOff: for a reason"},
		"nothing, since it ended": {200, "", waits("CrashLoopBackOff", &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}), SetStarting,
			"waits with CrashLoopBackOff, after it ended with OOMKilled and exit code 137: see kubectl logs orders -n shop -c crypto-broker --previous"},
		"nothing, since it has no node": {200, "", unscheduled, SetStarting, "the pod has no node yet: Insufficient memory."},
		"nothing, since its namespace has no profile": {200, "", func(p *corev1.Pod) { p.Namespace, p.Status.InitContainerStatuses = "empty", nil }, SetStarting,
			"namespace empty has no profile that is accepted"},
		"nothing, since its namespace's last profile is gone": {200, "", func(p *corev1.Pod) { p.Namespace, p.Status.InitContainerStatuses = "emptied", nil }, SetStarting,
			"namespace emptied has no profile that is accepted"},
		"the empty set that its namespace has": {200, said(profile.Digest([]byte("[]\n")), "Loaded"), func(p *corev1.Pod) { p.Namespace = "emptied" }, SetUpdated, ""},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			client := proxy(t, test.status, test.answer)
			var change []func(*corev1.Pod)
			if test.pod != nil {
				change = append(change, test.pod)
			}
			var r Row
			Served(t.Context(), client, brokerstest.BrokerPod(change...), &r, NewSets(client))
			if r.Set != test.set || !strings.Contains(r.Note, test.note) || test.note == "" && (r.Note != "" || r.Revision != 7 || r.Since == nil) {
				t.Errorf("found %+v", r)
			}
		})
	}
}
