// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func TestEachPolicyCanBeLeftOutAlone(t *testing.T) {
	all := kinds(renderChart(t), "ValidatingAdmissionPolicy")
	for value, without := range map[string][]string{
		"brokerExec": {"broker-exec"}, "brokerPods": {"broker-pods"}, "namedContainers": {"named-containers"},
		"hints":    {"hints-cronjobs", "hints-jobs", "hints-pods", "hints-workloads"},
		"injected": {"has-broker-annotated", "has-broker-labelled", "injected-annotated", "injected-labelled"}, "operatorObjects": {"operator-objects"},
		"podBindings": {"pod-bindings"}, "podStatus": {"pod-status"}, "profilesConfigMap": {"profiles-configmap"},
	} {
		t.Run(value, func(t *testing.T) {
			objects := renderChart(t, "--set", "policies."+value+"=false")
			want := slices.DeleteFunc(slices.Clone(all), func(name string) bool {
				return slices.Contains(without, strings.TrimPrefix(name, release+"-"))
			})
			if len(want)+len(without) != len(all) {
				t.Errorf("found %q by default, expected %q among them", all, without)
			}
			for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
				if found := kinds(objects, kind); !slices.Equal(found, want) {
					t.Errorf("found the objects %s %q, expected %q", kind, found, want)
				}
			}
		})
	}
}

func TestWebhookConfigurationsHaveTheAnnotationsOfTheValues(t *testing.T) {
	objects := renderChart(t, "--set-string", `webhook.annotations.admissions\.enforcer/disabled=true`)
	for _, found := range []map[string]string{
		find[admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration", release).Annotations,
		find[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration", release).Annotations,
	} {
		if found["admissions.enforcer/disabled"] != "true" || len(found) != 1 {
			t.Errorf("found the annotations %v, expected the one of the values", found)
		}
	}
}

// certificate is a Certificate of cert-manager as far as the chart sets it.
type certificate struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		SecretName string            `json:"secretName"`
		DNSNames   []string          `json:"dnsNames"`
		Usages     []string          `json:"usages"`
		PrivateKey map[string]any    `json:"privateKey"`
		IssuerRef  map[string]string `json:"issuerRef"`
	} `json:"spec"`
}

func TestWithCertManagerTheOperatorMakesNoCertificates(t *testing.T) {
	objects := renderChart(t, "--set", "certManager.enabled=true")
	const name = release + "-serving"
	serving := find[certificate](t, objects, "Certificate", name).Spec
	if !slices.Equal(serving.DNSNames, []string{release + "-webhook." + releaseNamespace + ".svc"}) || serving.IssuerRef["name"] != release+"-authority" {
		t.Errorf("found %+v, expected a certificate of the Service's name by the release's own authority", serving)
	}
	spec := find[appsv1.Deployment](t, objects, "Deployment", release).Spec.Template.Spec
	operator := spec.Containers[0]
	directory := "--webhook-certificate-dir=" + operator.VolumeMounts[0].MountPath
	if !slices.Contains(operator.Args, directory) || spec.Volumes[0].Secret.SecretName != serving.SecretName || spec.Volumes[0].Name != operator.VolumeMounts[0].Name {
		t.Errorf("found the arguments %q and the volumes %+v, expected %s with the Secret %s", operator.Args, spec.Volumes, directory, serving.SecretName)
	}
	want := releaseNamespace + "/" + name
	for _, found := range []map[string]string{
		find[admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration", release).Annotations,
		find[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration", release).Annotations,
	} {
		if found["cert-manager.io/inject-ca-from"] != want {
			t.Errorf("found the annotations %v, expected cert-manager.io/inject-ca-from with %s", found, want)
		}
	}

	var less []string
	with := strings.Split(rights(t, objects), "\n")
	for line := range strings.SplitSeq(rights(t, renderChart(t)), "\n") {
		if !slices.Contains(with, line) {
			less = append(less, line)
		}
	}
	wantLess := []string{
		"ClusterRole " + release + " in the cluster: get list patch watch mutatingwebhookconfigurations.admissionregistration.k8s.io named " + release,
		"ClusterRole " + release + " in the cluster: get list patch watch validatingwebhookconfigurations.admissionregistration.k8s.io named " + release,
		"Role " + release + " in " + releaseNamespace + ": get list update watch secrets named " + release + "-ca",
	}
	if !slices.Equal(less, wantLess) {
		t.Errorf("the operator has the rights %q less, expected %q", less, wantLess)
	}
}

func TestAuditRecordsAreSignedByTheKeyOfTheValues(t *testing.T) {
	for name, arguments := range map[string][]string{"alone": nil, "with cert-manager": {"--set", "certManager.enabled=true"}} {
		t.Run(name, func(t *testing.T) {
			objects := renderChart(t, append(arguments, "--set", "audit.enabled=true,audit.keySecret=operator-audit")...)
			spec := find[appsv1.Deployment](t, objects, "Deployment", release).Spec.Template.Spec
			operator := spec.Containers[0]
			if !slices.Contains(operator.Args, "--audit") {
				t.Errorf("found the arguments %q, expected --audit", operator.Args)
			}
			last := len(spec.Volumes) - 1
			if last < 0 || len(operator.VolumeMounts) != len(spec.Volumes) {
				t.Fatalf("found the volumes %+v and the mounts %+v", spec.Volumes, operator.VolumeMounts)
			}
			key := "--audit-key=" + operator.VolumeMounts[last].MountPath + "/audit.key"
			if !slices.Contains(operator.Args, key) || spec.Volumes[last].Secret.SecretName != "operator-audit" || spec.Volumes[last].Name != operator.VolumeMounts[last].Name {
				t.Errorf("found the arguments %q and the volumes %+v, expected %s with the Secret", operator.Args, spec.Volumes, key)
			}
		})
	}
	without := find[appsv1.Deployment](t, renderChart(t), "Deployment", release).Spec.Template.Spec
	if slices.Contains(without.Containers[0].Args, "--audit") || len(without.Volumes) > 0 {
		t.Errorf("found %+v, expected no audit records by default", without)
	}
}

func TestAnIssuerOfTheUsersIsTheOnlyOne(t *testing.T) {
	objects := renderChart(t, "--set", "certManager.enabled=true,certManager.issuerRef.kind=ClusterIssuer,certManager.issuerRef.name=company")
	if found := find[certificate](t, objects, "Certificate", release+"-serving").Spec.IssuerRef; found["kind"] != "ClusterIssuer" || found["name"] != "company" {
		t.Errorf("found the issuer %v, expected the issuer in the values", found)
	}
	if issuers, all := kinds(objects, "Issuer"), kinds(objects, "Certificate"); len(issuers) > 0 || len(all) != 1 {
		t.Errorf("found the Issuers %q and the Certificates %q, expected none and one", issuers, all)
	}
}

func TestHelmTestMayCreateProfilesThatNobodyServesAndNothingElse(t *testing.T) {
	rendered, err := templateAll(t.Context(), "--show-only", "templates/tests/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := parse(t, rendered)
	name := release + "-test"
	want := "Role " + name + " in " + releaseNamespace + ": create cryptoprofiles.cryptobroker.io\n" +
		"ServiceAccount " + releaseNamespace + "/" + name + " is bound to Role " + name + " in " + releaseNamespace + "\n"
	if found := rights(t, objects); found != want {
		t.Errorf("found %q, expected %q", found, want)
	}
	for _, object := range objects {
		if object.GetAnnotations()["helm.sh/hook"] != "test" {
			t.Errorf("%s has the annotations %v, expected the hook test", identity(object), object.GetAnnotations())
		}
	}

	pod := find[corev1.Pod](t, objects, "Pod", name)
	installed := renderChart(t)
	if selector := find[corev1.Service](t, installed, "Service", release+"-webhook").Spec.Selector; has(pod.Labels, selector) {
		t.Errorf("found the labels %v, expected the Service not to select them by %v", pod.Labels, selector)
	}
	operator := find[appsv1.Deployment](t, installed, "Deployment", release).Spec.Template.Spec.Containers[0]
	if found := pod.Spec.Containers[0]; found.Image != operator.Image || !slices.Equal(found.Args, []string{"check"}) {
		t.Errorf("found %s with %q, expected check of the operator's image %s", found.Image, found.Args, operator.Image)
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	if result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
		t.Error(result.ForbiddenDetail())
	}
}
