// SPDX-License-Identifier: Apache-2.0

package brokerstest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// Cluster has the answers of an API server by the path of the request: an object, or an
// [http.Handler]. Everything else is not found. A real API server proxies to no address
// of this machine, which is where a test's broker would be.
type Cluster map[string]any

// Serve serves the cluster until the test ends, and returns its URL.
func (c Cluster) Serve(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, found := c[r.URL.Path]
		if handler, is := answer.(http.Handler); is {
			handler.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if !found {
			w.WriteHeader(http.StatusNotFound)
			answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// AddNamespace adds a namespace with its profiles, all profiles of the cluster, the set of
// both, and pods with brokers that give these answers to /uses. The pod web-0 belongs to the
// StatefulSet web, and a pod without a hyphen to nobody.
func (c Cluster) AddNamespace(name string, profiles []v1alpha1.CryptoProfile, all []v1alpha1.ClusterCryptoProfile, uses map[string]any) {
	const own = "/apis/cryptobroker.io/v1alpha1"
	ns := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set := corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: v1alpha1.ProfilesConfigMap},
		Data:       map[string]string{profile.FileName: string(render.Effective(profiles, all, &ns).Data)},
	}
	c["/api/v1/namespaces/"+name] = ns
	c["/api/v1/namespaces/"+name+"/configmaps/"+v1alpha1.ProfilesConfigMap] = set
	c[own+"/namespaces/"+name+"/cryptoprofiles"] = v1alpha1.CryptoProfileList{Items: profiles}
	c[own+"/clustercryptoprofiles"] = v1alpha1.ClusterCryptoProfileList{Items: all}

	namespaces, _ := c["/api/v1/namespaces"].(corev1.NamespaceList)
	sets, _ := c["/api/v1/configmaps"].(corev1.ConfigMapList)
	allProfiles, _ := c[own+"/cryptoprofiles"].(v1alpha1.CryptoProfileList)
	namespaces.Items, sets.Items = append(namespaces.Items, ns), append(sets.Items, set)
	allProfiles.Items = append(allProfiles.Items, profiles...)
	c["/api/v1/namespaces"], c["/api/v1/configmaps"], c[own+"/cryptoprofiles"] = namespaces, sets, allProfiles

	var pods corev1.PodList
	for pod, answer := range uses {
		owner, _, owned := strings.Cut(pod, "-")
		pods.Items = append(pods.Items, *BrokerPod(func(p *corev1.Pod) {
			p.Namespace, p.Name = name, pod
			if owned {
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: owner, UID: types.UID(name + "/" + owner), Controller: new(true)}}
			}
		}))
		c["/api/v1/namespaces/"+name+"/pods/http:"+pod+":9470/proxy/uses"] = answer
	}
	c["/api/v1/namespaces/"+name+"/pods"] = pods
	allPods, _ := c["/api/v1/pods"].(corev1.PodList)
	allPods.Items = append(allPods.Items, pods.Items...)
	c["/api/v1/pods"] = allPods
}
