// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

const keyGateway = release + "-key-gateway"

// withGateway renders the chart with the key gateway.
func withGateway(t *testing.T, values ...string) []*unstructured.Unstructured {
	t.Helper()
	return renderChart(t, "--set", strings.Join(append([]string{"keyGateway.enabled=true"}, values...), ","))
}

func TestTheKeyGatewayIsInstalledOnlyByItsValue(t *testing.T) {
	for _, object := range renderChart(t) {
		if strings.Contains(string(mustJSON(t, object)), keyGateway) {
			t.Errorf("%s names the objects of the key gateway with the default values", identity(object))
		}
	}
	var found []string
	for _, object := range withGateway(t, "keyGateway.secrets={kms}", "metrics.podMonitor.enabled=true") {
		if strings.HasPrefix(object.GetName(), keyGateway) {
			found = append(found, object.GetKind()+" "+strings.TrimPrefix(object.GetName(), keyGateway))
			if object.GetLabels()["app.kubernetes.io/component"] != "key-gateway" || object.GetLabels()["app.kubernetes.io/name"] != release {
				t.Errorf("%s has the labels %v", identity(object), object.GetLabels())
			}
		}
	}
	slices.Sort(found)
	want := []string{
		"ClusterRole ", "ClusterRoleBinding ", "Deployment ", "NetworkPolicy ", "PodDisruptionBudget ", "PodMonitor ",
		"Role ", "Role -operator", "RoleBinding ", "RoleBinding -operator", "Service ", "ServiceAccount ",
	}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

func TestTheKeyGatewayBringsTheseRightsAndNoOther(t *testing.T) {
	without := strings.Split(rights(t, renderChart(t)), "\n")
	var more []string
	for line := range strings.SplitSeq(rights(t, withGateway(t, "keyGateway.secrets={aws,kms}")), "\n") {
		if !slices.Contains(without, line) {
			more = append(more, strings.ReplaceAll(line, keyGateway, "G"))
		}
	}
	want := []string{
		"ClusterRole G in the cluster: create tokenreviews.authentication.k8s.io",
		"ClusterRole G in the cluster: get configmaps named crypto-broker-profiles",
		"ClusterRole G in the cluster: get list watch namespaces",
		"ClusterRole G in the cluster: get pods",
		"ClusterRole G in the cluster: list watch clusterkeyproviders.cryptobroker.io",
		"ClusterRole G in the cluster: list watch keyproviders.cryptobroker.io",
		"Role G in crypto-broker-system: get watch secrets named aws kms",
		"Role G-operator in crypto-broker-system: get list update watch configmaps named G",
		"Role G-operator in crypto-broker-system: get list update watch secrets named G-ca G-tls",
		"ServiceAccount crypto-broker-system/" + release + " is bound to Role G-operator in crypto-broker-system",
		"ServiceAccount crypto-broker-system/G is bound to ClusterRole G in the cluster",
		"ServiceAccount crypto-broker-system/G is bound to Role G in crypto-broker-system",
	}
	if !slices.Equal(more, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(more, "\n"), strings.Join(want, "\n"))
	}
}

func TestCertificatesOfBrokersAreSwitchedOnInTwoSteps(t *testing.T) {
	with := func(value string) []*unstructured.Unstructured {
		return renderChart(t, "--kube-version", "1.37.0", "--set", "keyGateway.enabled=true,keyGateway.brokerCertificates="+value)
	}
	for value, want := range map[string]struct{ signs, demands bool }{"": {false, false}, "issued": {true, false}, "required": {true, true}} {
		objects := with(value)
		operator := find[appsv1.Deployment](t, objects, "Deployment", release).Spec.Template.Spec.Containers[0].Args
		gateway := find[appsv1.Deployment](t, objects, "Deployment", keyGateway).Spec.Template.Spec.Containers[0].Args
		signs, demands := slices.Contains(operator, "--broker-certificates"), slices.Contains(gateway, "--broker-authorities-file=/etc/crypto-broker/trust/ca.crt")
		if signs != want.signs || demands != want.demands {
			t.Errorf("%s: the operator signs: %t, the gateway demands: %t", value, signs, demands)
		}
		if compares := strings.Contains(string(mustJSON(t, objects)), contract.KeyGatewayCertificate); compares != want.signs {
			t.Errorf("%s: the policies for final pods know the certificate: %t", value, compares)
		}
	}
	without := strings.Split(rights(t, with("")), "\n")
	var more []string
	for line := range strings.SplitSeq(rights(t, with("required")), "\n") {
		if !slices.Contains(without, line) {
			more = append(more, strings.ReplaceAll(line, keyGateway, "G"))
		}
	}
	want := []string{
		"ClusterRole G-operator in the cluster: get list watch podcertificaterequests.certificates.k8s.io",
		"ClusterRole G-operator in the cluster: sign signers.certificates.k8s.io named cryptobroker.io/broker",
		"ClusterRole G-operator in the cluster: update podcertificaterequests/status.certificates.k8s.io",
		"ServiceAccount crypto-broker-system/" + release + " is bound to ClusterRole G-operator in the cluster",
	}
	if !slices.Equal(more, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(more, "\n"), strings.Join(want, "\n"))
	}
}

func TestTheKeyGatewayIsAsHardenedAsTheOperator(t *testing.T) {
	objects := withGateway(t)
	deployment := find[appsv1.Deployment](t, objects, "Deployment", keyGateway)
	operator := find[appsv1.Deployment](t, objects, "Deployment", release).Spec.Template.Spec
	pod := deployment.Spec.Template
	container := pod.Spec.Containers[0]
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	if result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
		t.Errorf("the Pod Security level restricted forbids it: %s", result.ForbiddenDetail())
	}
	for what, holds := range map[string]bool{
		"two replicas, of which none is missed":   *deployment.Spec.Replicas == 2 && deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.IntVal == 0,
		"a read-only root":                        *container.SecurityContext.ReadOnlyRootFilesystem,
		"a memory limit that Go knows":            container.Resources.Limits.Memory().Value() == 512<<20 && slices.Contains(container.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: "469762048"}),
		"probes at its status port":               container.ReadinessProbe.HTTPGet.Port.StrVal == "status" && container.LivenessProbe.HTTPGet.Path == "/healthz",
		"an account of its own":                   pod.Spec.ServiceAccountName != operator.ServiceAccountName,
		"spread over nodes":                       len(pod.Spec.TopologySpreadConstraints) == 2 && pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels["app.kubernetes.io/name"] == keyGateway,
		"the certificate that the operator makes": pod.Spec.Volumes[0].Secret.SecretName == keyGateway+"-tls",
		"the keys that the operator publishes":    pod.Spec.Volumes[1].ConfigMap.Name == keyGateway,
		"the operator's flag for it":              slices.Contains(operator.Containers[0].Args, "--key-gateway-service="+keyGateway),
		"time for its shutdown":                   *pod.Spec.TerminationGracePeriodSeconds > 20,
	} {
		if !holds {
			t.Errorf("found no %s", what)
		}
	}

	// No Service, PodDisruptionBudget or policy of one component selects the pods of the other.
	service := find[corev1.Service](t, objects, "Service", keyGateway).Spec
	if port := service.Ports[0]; port.Port != 443 || port.TargetPort.StrVal != "brokers" || container.Ports[0].ContainerPort != 8443 {
		t.Errorf("found the port %+v", port)
	}
	others := find[appsv1.Deployment](t, objects, "Deployment", release).Spec.Template.Labels
	if !has(pod.Labels, service.Selector) || has(others, service.Selector) {
		t.Errorf("the selector %v is not for the labels %v alone", service.Selector, pod.Labels)
	}
	if selector := find[corev1.Service](t, objects, "Service", release+"-webhook").Spec.Selector; has(pod.Labels, selector) {
		t.Errorf("the selector %v of the webhooks is for the gateway, too", selector)
	}
}

func TestAValueReachesTheKeyGateway(t *testing.T) {
	objects := withGateway(t, "keyGateway.replicas=1", "keyGateway.image.registry=registry.example", "keyGateway.image.tag=dev", "keyGateway.logLevel=debug",
		"keyGateway.checkPodAddress=false", "keyGateway.hostNetworkPods=true", "keyGateway.tlsProvider=openssl", "keyGateway.authoritiesConfigMap=roots", "keyGateway.nodeSelector.zone=a", "keyGateway.podLabels.team=own",
		"keyGateway.podAnnotations.note=own", "keyGateway.serviceAccount.annotations.role=aws", "keyGateway.service.ipFamilies={IPv6}", "keyGateway.extraEnv[0].name=HTTPS_PROXY")
	template := find[appsv1.Deployment](t, objects, "Deployment", keyGateway).Spec.Template
	container := template.Spec.Containers[0]
	for what, holds := range map[string]bool{
		"image":           container.Image == "registry.example/gateway-openssl:dev",
		"log level":       slices.Contains(container.Args, "--log-level=debug"),
		"address":         slices.Contains(container.Args, "--check-pod-address=false"),
		"host network":    slices.Contains(container.Args, "--host-network-pods"),
		"TLS provider":    slices.Contains(container.Args, "--tls-provider=openssl"),
		"authorities":     slices.Contains(container.Env, corev1.EnvVar{Name: "SSL_CERT_FILE", Value: "/etc/crypto-broker/authorities/ca.crt"}) && template.Spec.Volumes[2].ConfigMap.Name == "roots",
		"environment":     slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "HTTPS_PROXY" }),
		"node selector":   template.Spec.NodeSelector["zone"] == "a",
		"pod's labels":    template.Labels["team"] == "own" && template.Annotations["note"] == "own",
		"account":         find[corev1.ServiceAccount](t, objects, "ServiceAccount", keyGateway).Annotations["role"] == "aws",
		"Service":         find[corev1.Service](t, objects, "Service", keyGateway).Spec.IPFamilies[0] == corev1.IPv6Protocol,
		"budget for none": !slices.Contains(kinds(objects, "PodDisruptionBudget"), keyGateway),
	} {
		if !holds {
			t.Errorf("the value does not reach the %s", what)
		}
	}
}

func TestTheKeyGatewayIsReachedByPodsAndReachesWhatTheValuesSay(t *testing.T) {
	of := func(values ...string) networkingv1.NetworkPolicySpec {
		return find[networkingv1.NetworkPolicy](t, withGateway(t, values...), "NetworkPolicy", keyGateway).Spec
	}
	spec := of()
	if rule := spec.Ingress[0]; rule.Ports[0].Port.IntVal != 8443 || len(rule.From) != 1 || rule.From[0].NamespaceSelector == nil || rule.From[0].IPBlock != nil {
		t.Errorf("found the rule %+v, want port 8443 from every pod", rule)
	}
	if rule := spec.Ingress[1]; rule.Ports[0].Port.IntVal != 8081 || len(rule.From) > 0 || len(spec.Ingress) != 2 || len(spec.PolicyTypes) != 1 {
		t.Errorf("found %+v, want port 8081 from everywhere, and no more", spec)
	}
	spec = of("networkPolicy.metricsFrom[0].ipBlock.cidr=192.0.2.0/28", "keyGateway.networkPolicy.brokersFrom[0].podSelector.matchLabels.a=b")
	if from := spec.Ingress[1].From; len(from) != 2 || from[0].PodSelector.MatchLabels["app.kubernetes.io/name"] != release || from[1].IPBlock.CIDR != "192.0.2.0/28" {
		t.Errorf("found %+v, want the operator and Prometheus", from)
	}
	if from := spec.Ingress[0].From; len(from) != 1 || from[0].PodSelector.MatchLabels["a"] != "b" {
		t.Errorf("found %+v, want the pods of the value", from)
	}
	spec = of("keyGateway.networkPolicy.managers[0].ipBlock.cidr=198.51.100.0/24")
	if last := spec.Egress[len(spec.Egress)-1]; len(spec.Egress) != 3 || len(last.Ports) > 0 || last.To[0].IPBlock.CIDR != "198.51.100.0/24" || len(spec.PolicyTypes) != 2 {
		t.Errorf("found %+v, want the API server, DNS and the key managers", spec.Egress)
	}
	if found := kinds(withGateway(t, "networkPolicy.enabled=false"), "NetworkPolicy"); len(found) > 0 {
		t.Errorf("found %q, want none", found)
	}
}
