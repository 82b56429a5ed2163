// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// exportingSpans is the name of the golden pod whose template has traces. Further such pods have names that begin with it.
const exportingSpans = "a-pod-whose-broker-exports-spans"

// sendingRecords is the name of the golden pod with a collector of audit records.
const sendingRecords = "a-pod-whose-broker-sends-audit-records-by-tls"

// besideKeyGateway is the beginning of the names of golden pods with a key gateway, which injection by policy does not support.
const besideKeyGateway = "a-pod-beside-a-key-gateway-"

// setTemplate changes the InjectionTemplate as an operator with other settings would.
func setTemplate(t *testing.T, admin client.Client, template template.Template, cluster string) {
	t.Helper()
	parameters, err := injection.Parameters(template, cluster)
	if err != nil {
		t.Fatal(err)
	}
	current := &v1alpha1.InjectionTemplate{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: release}, current); err != nil {
		t.Fatal(err)
	}
	current.Spec = parameters
	if err := admin.Update(t.Context(), current); err != nil {
		t.Fatal(err)
	}
}

// exportSpans changes the InjectionTemplate as an operator with traces would, and
// returns once the policies have it.
func exportSpans(t *testing.T, admin client.Client) {
	t.Helper()
	common := policyTemplate()
	common.Traces = template.Traces{
		Endpoint: "http://collector.observability:4317", Protocol: "grpc", Sampler: "parentbased_traceidratio", SamplerArgument: "0.01",
	}
	useCollector(t, admin, common, common.Traces.Endpoint)
}

// useCollector writes the InjectionTemplate, and returns once pods get its collector.
func useCollector(t *testing.T, admin client.Client, template template.Template, endpoint string) {
	t.Helper()
	setTemplate(t, admin, template, "")
	eventually(t, "the policy with the new template", func(ctx context.Context) error {
		pod := plainPod("default", "await")
		pod.Annotations = map[string]string{contract.InjectAnnotation: "true"}
		if err := admin.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		if !slices.ContainsFunc(pod.Spec.InitContainers[0].Env, func(e corev1.EnvVar) bool { return e.Value == endpoint }) {
			return errors.New("found a broker without the variables of the template")
		}
		return nil
	})
}

func policyMakesTheGoldenPodWhoseBrokerExportsSpans(t *testing.T, admin client.Client) {
	exportSpans(t, admin)
	expectGoldenPod(t, admin, exportingSpans)
	authorities, err := os.ReadFile("../../webhook/injection/template/testdata/collector-authority.pem")
	if err != nil {
		t.Fatal(err)
	}
	common := policyTemplate()
	common.Traces = template.Traces{Endpoint: "https://collector.observability:4317", CABundle: string(authorities)}
	useCollector(t, admin, common, common.Traces.Endpoint)
	expectGoldenPod(t, admin, exportingSpans+"-by-tls")
}

func policyMakesTheGoldenPodWhoseBrokerSendsAuditRecords(t *testing.T, admin client.Client) {
	common := policyTemplate()
	authorities, err := os.ReadFile("../../webhook/injection/template/testdata/collector-authority.pem")
	if err != nil {
		t.Fatal(err)
	}
	common.Audit = template.Audit{Endpoint: "https://records.observability:4317", CABundle: string(authorities)}
	useCollector(t, admin, common, common.Audit.Endpoint)
	expectGoldenPod(t, admin, sendingRecords)
}

func policyRefusesACopyThatExportsItsSpansElsewhere(t *testing.T, admin client.Client) {
	exportSpans(t, admin)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, admin, namespace)
	injected := plainPod(namespace.Name, "pod")
	injected.Annotations = map[string]string{contract.InjectAnnotation: "true"}
	if err := admin.Create(t.Context(), injected, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	injected.ResourceVersion, injected.UID = "", ""
	for sentence, test := range map[string]struct {
		change  func(*corev1.Container)
		refused bool
	}{
		"as it is":                       {func(*corev1.Container) {}, false},
		"a variable of another injector": {func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: "AWS_ROLE_ARN", Value: "arn"}) }, false},
		"a variable of another injector among ours": {func(c *corev1.Container) {
			c.Env = slices.Insert(c.Env, 2, corev1.EnvVar{Name: "AWS_ROLE_ARN", Value: "arn"})
		}, false},
		"the attributes in front of the variables that they refer to": {func(c *corev1.Container) {
			attributes := c.Env[4]
			c.Env = slices.Insert(slices.Delete(c.Env, 4, 5), 0, attributes)
		}, true},
		"the same variable twice": {func(c *corev1.Container) { c.Env = append(c.Env, c.Env[1]) }, true},
		"another collector":       {func(c *corev1.Container) { c.Env[5].Value = "http://elsewhere:4317" }, true},
		"another collector behind ours": {func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://elsewhere:4317"})
		}, true},
		"another collector by a variable that comes before ours": {func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", Value: "http://elsewhere:4317"})
		}, true},
		"the name of another pod": {func(c *corev1.Container) { c.Env[1] = corev1.EnvVar{Name: c.Env[1].Name, Value: "other"} }, true},
		"no variables":            {func(c *corev1.Container) { c.Env = nil }, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			pod := injected.DeepCopy()
			test.change(&pod.Spec.InitContainers[0])
			err := admin.Create(t.Context(), pod, client.DryRunAll)
			if test.refused && (err == nil || !strings.Contains(err.Error(), `found a container "crypto-broker" that is not the one that is added`)) {
				t.Errorf("found %v, expected a refusal of the container", err)
			}
			if !test.refused && err != nil {
				t.Error(err)
			}
		})
	}
}

func policyGivesABrokerTheAmountsOfItsPodWhereTheChartHasNone(t *testing.T, admin client.Client) {
	common := policyTemplate()
	common.Resources = corev1.ResourceRequirements{}
	setTemplate(t, admin, common, "")
	sized := plainPod("default", "sized")
	sized.Annotations = map[string]string{
		contract.InjectAnnotation: "true", contract.CPURequestAnnotation: "50m", contract.CPULimitAnnotation: "1", contract.MemoryLimitAnnotation: "64Mi",
	}
	eventually(t, "the policy with the new template", func(ctx context.Context) error {
		pod := sized.DeepCopy()
		if err := admin.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		found := pod.Spec.InitContainers[0].Resources
		if found.Requests.Cpu().String() != "50m" || found.Limits.Cpu().String() != "1" || found.Limits.Memory().String() != "64Mi" {
			return fmt.Errorf("found the resources %v, expected those of the annotations", found)
		}
		if found.Requests.Memory().String() != "64Mi" { // by default, the limit
			return fmt.Errorf("found the resources %v, expected no request of the template", found)
		}
		return nil
	})
}
