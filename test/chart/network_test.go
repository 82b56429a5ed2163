// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
)

// policyOf is the NetworkPolicy of a chart that is rendered with more arguments.
func policyOf(t *testing.T, arguments ...string) *networkingv1.NetworkPolicy {
	t.Helper()
	return find[networkingv1.NetworkPolicy](t, renderChart(t, arguments...), "NetworkPolicy", release)
}

// Every rule names a port. Rules without peers let in the API server and the kubelet, whatever addresses they have.
func TestTheOperatorCanBeReachedAtThreePortsAndNoOther(t *testing.T) {
	spec := policyOf(t).Spec
	var ports []int32
	for _, rule := range spec.Ingress {
		if len(rule.From) > 0 || len(rule.Ports) != 1 {
			t.Errorf("found the rule %+v, expected one port and every peer", rule)
		}
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.IntVal)
		}
	}
	if !slices.Equal(ports, []int32{10250, 8081, 8080}) || !slices.Equal(spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
		t.Errorf("found the ports %v and the types %v, expected the ports of webhooks, health and metrics, and Ingress alone", ports, spec.PolicyTypes)
	}
}

func TestTheWebhooksCanBeKeptForTheAPIServer(t *testing.T) {
	rule := policyOf(t, "--set", "networkPolicy.webhookFrom[0].ipBlock.cidr=192.0.2.0/28").Spec.Ingress[0]
	if rule.Ports[0].Port.IntVal != 10250 || len(rule.From) != 1 || rule.From[0].IPBlock.CIDR != "192.0.2.0/28" {
		t.Errorf("found %+v, expected port 10250 from 192.0.2.0/28", rule)
	}
}

// A pod chooses the port of its broker by an annotation.
func TestTheOperatorMayAskBrokersAtEveryPortThatAPodCanChoose(t *testing.T) {
	spec := policyOf(t, "--set", "networkPolicy.egress=true").Spec
	for _, rule := range spec.Egress {
		if port := rule.Ports[0]; len(rule.To) > 0 && port.Port.IntVal == 1024 && port.EndPort != nil && *port.EndPort == 65535 {
			return
		}
	}
	t.Errorf("found %+v, expected a rule with ports 1024 to 65535", spec.Egress)
}

func TestThereIsNoNetworkPolicyOnTheNodesNetwork(t *testing.T) {
	for _, object := range renderChart(t, "--set", "hostNetwork=true,webhook.port=10260") {
		if object.GetKind() == "NetworkPolicy" {
			t.Error("found a NetworkPolicy, which has no meaning there")
		}
	}
}
