// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"context"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

// gatewayPod returns the pod of a gateway.
func gatewayPod(uid, address string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "gateway-" + uid, UID: types.UID(uid), Labels: map[string]string{contract.ComponentLabel: contract.KeyGatewayComponent}},
		Status:     corev1.PodStatus{PodIP: address},
	}
}

// A provider is late as long as one gateway lacks it, so the end of that gateway changes its status.
func TestAProviderIsJudgedAgainWhenAGatewayThatLacksItEnds(t *testing.T) {
	has, lacks := gatewayPod("1", "10.0.0.1"), gatewayPod("2", "10.0.0.2")
	cluster := fake.NewClientBuilder().WithObjects(has, lacks).Build()
	reports := map[string]*providerreport.Report{
		"10.0.0.1": {Providers: []providerreport.Provider{{UID: provider().UID, Generation: 3}}},
		"10.0.0.2": {},
	}
	ask := func(_ context.Context, address netip.AddrPort, _ string) (*providerreport.Report, string, error) {
		return reports[address.Addr().String()], "", nil
	}
	judged := 0
	p := newPoller(cluster, contract.KeyGatewayComponent, Options{OperatorNamespace: "operators", Ask: ask, Interval: DefaultInterval}, func(name types.NamespacedName) {
		if name == client.ObjectKeyFromObject(provider()) {
			judged++
		}
	})
	p.put(provider())
	p.poll(t.Context())
	p.poll(t.Context())
	if views, _ := p.views(provider().UID); len(views) != 2 || judged != 1 {
		t.Fatalf("found %d answers and %d requests, expected 2 and 1", len(views), judged)
	}

	if err := cluster.Delete(t.Context(), lacks); err != nil {
		t.Fatal(err)
	}
	p.poll(t.Context())
	if views, _ := p.views(provider().UID); len(views) != 1 || judged != 2 {
		t.Errorf("found %d answers and %d requests, expected 1 and 2", len(views), judged)
	}
}
