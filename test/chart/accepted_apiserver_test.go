// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

func TestTheAPIServerKnowsEveryFieldOfEveryObject(t *testing.T) {
	admin := clusterAdmin(t)
	accept := func(objects []*unstructured.Unstructured) func(*testing.T) {
		return func(t *testing.T) {
			for _, object := range objects {
				err := admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object),
					client.DryRunAll, client.ForceOwnership, client.FieldOwner("test"))
				if err != nil {
					t.Errorf("%s: %v", identity(object), err)
				}
			}
		}
	}
	t.Run("of config/default", accept(kustomize(t, "default")))
	// The resources of monitors and of cert-manager are not part of Kubernetes, so this API server does not have them.
	const foreign = "metrics.podMonitor.enabled=false,metrics.serviceMonitor.enabled=false,certManager.enabled=false,alerts.enabled=false,dashboard.namespace="
	// The test is another field manager than the installed release, and can't take its fields.
	const changing = "podDisruptionBudget.minAvailable=,strategy.type=RollingUpdate,webhook.service.ipFamilies={IPv4},keyGateway.service.ipFamilies={IPv4}"
	t.Run("of the chart with everything switched on", accept(renderChart(t, append(everySwitchOn(), "--set", foreign+","+changing)...)))
}

func TestExpressionsHaveTheTypesOfTheirObjects(t *testing.T) {
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(server.config)
	if err != nil {
		t.Fatal(err)
	}
	httpClient, err := rest.HTTPClientFor(server.config)
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(server.config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	checker := &validating.TypeChecker{SchemaResolver: &resolver.ClientDiscoveryResolver{Discovery: discoveryClient}, RestMapper: mapper}
	check := func(objects []*unstructured.Unstructured) {
		for _, name := range policyNames {
			for _, warning := range checker.Check(find[admissionv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy", name)) {
				t.Errorf("%s: %s: %s", name, warning.FieldRef, warning.Warning)
			}
		}
	}
	check(renderChart(t))
	if apiserver.ServesPodCertificates(t, server.config) {
		check(renderChart(t, "--kube-version", apiserver.Version(t, server.config), "--set", "keyGateway.enabled=true,keyGateway.brokerCertificates=issued"))
	}
}
