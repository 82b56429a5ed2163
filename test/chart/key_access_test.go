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
)

const (
	keyAccess           = release + "-key-access"
	withKeyAccessValues = "keyAccess.enabled=true,keyAccess.configMap=settings,keyAccess.keysSecret=keys,keyAccess.certificateSecret=tls"
)

// withKeyAccess renders the chart with the key access service.
func withKeyAccess(t *testing.T, values ...string) []*unstructured.Unstructured {
	t.Helper()
	return renderChart(t, "--set", strings.Join(append([]string{withKeyAccessValues}, values...), ","))
}

func TestTheKeyAccessServiceIsInstalledOnlyByItsValueAndMayReadItsResourcesOnly(t *testing.T) {
	plain := renderChart(t)
	for _, object := range plain {
		if strings.Contains(string(mustJSON(t, object)), keyAccess) {
			t.Errorf("%s names the objects of the key access service with the default values", identity(object))
		}
	}
	objects := withKeyAccess(t)
	var found []string
	for _, object := range objects {
		if strings.HasPrefix(object.GetName(), keyAccess) {
			found = append(found, object.GetKind()+strings.TrimPrefix(object.GetName(), keyAccess))
			if object.GetLabels()["app.kubernetes.io/component"] != "key-access" || object.GetNamespace() != "crypto-broker-system" {
				t.Errorf("%s has the labels %v and the namespace %q", identity(object), object.GetLabels(), object.GetNamespace())
			}
		}
	}
	slices.Sort(found)
	if want := []string{"Deployment", "NetworkPolicy", "PodDisruptionBudget", "Role", "RoleBinding", "Service", "ServiceAccount"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	without := strings.Split(rights(t, plain), "\n")
	var more []string
	for line := range strings.SplitSeq(rights(t, objects), "\n") {
		if !slices.Contains(without, line) {
			more = append(more, strings.ReplaceAll(line, keyAccess, "A"))
		}
	}
	want := []string{
		"Role A in crypto-broker-system: list watch keyaccesspeers.cryptobroker.io",
		"Role A in crypto-broker-system: list watch keyaccesspolicies.cryptobroker.io",
		"ServiceAccount crypto-broker-system/A is bound to Role A in crypto-broker-system",
	}
	if !slices.Equal(more, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(more, "\n"), strings.Join(want, "\n"))
	}
}

func TestTheKeyAccessServiceIsHardenedAndHasItsFiles(t *testing.T) {
	objects := withKeyAccess(t, "keyAccess.federationSecret=statements", "keyAccess.keyProvidersSecret=managers", "keyAccess.authoritiesConfigMap=roots", "keyGateway.image.tag=dev", "keyAccess.service.type=LoadBalancer")
	deployment := find[appsv1.Deployment](t, objects, "Deployment", keyAccess)
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
	files := map[string]string{}
	for _, volume := range pod.Spec.Volumes {
		for _, mount := range container.VolumeMounts {
			if mount.Name != volume.Name || !mount.ReadOnly {
				continue
			}
			if volume.Secret != nil {
				files[mount.MountPath] = "Secret " + volume.Secret.SecretName
			} else {
				files[mount.MountPath] = "ConfigMap " + volume.ConfigMap.Name
			}
		}
	}
	for path, want := range map[string]string{
		"/etc/key-access/config": "ConfigMap settings", "/etc/key-access/keys": "Secret keys", "/etc/key-access/tls": "Secret tls",
		"/etc/key-access/federation": "Secret statements", "/etc/key-access/key-providers": "Secret managers", "/etc/key-access/authorities": "ConfigMap roots",
	} {
		if files[path] != want {
			t.Errorf("found %q at %s, expected %q", files[path], path, want)
		}
	}
	service := find[corev1.Service](t, objects, "Service", keyAccess).Spec
	for what, holds := range map[string]bool{
		"two replicas, of which none is missed":        *deployment.Spec.Replicas == 2 && deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.IntVal == 0,
		"a read-only root":                             *container.SecurityContext.ReadOnlyRootFilesystem,
		"a memory limit that Go knows":                 slices.Contains(container.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: "469762048"}),
		"its command":                                  slices.Equal(container.Args, []string{"key-access", "--config=/etc/key-access/config/config.yaml"}),
		"the image of the gateway":                     strings.HasSuffix(container.Image, "/gateway:dev"),
		"authorities of the image's system":            slices.Contains(container.Env, corev1.EnvVar{Name: "SSL_CERT_FILE", Value: "/etc/key-access/authorities/ca.crt"}),
		"probes at its status port":                    container.ReadinessProbe.HTTPGet.Port.StrVal == "status",
		"an account of its own":                        pod.Spec.ServiceAccountName == keyAccess,
		"a moment until nodes know that it ends":       container.Lifecycle.PreStop.Sleep.Seconds == 5 && *pod.Spec.TerminationGracePeriodSeconds > 20,
		"a Service for its pods with a port":           has(pod.Labels, service.Selector) && service.Ports[0].TargetPort.StrVal == "clients" && service.Type == corev1.ServiceTypeLoadBalancer,
		"a label by which the operator finds it":       pod.Labels["app.kubernetes.io/component"] == "key-access",
		"its pods apart from the pods of the operator": !has(find[appsv1.Deployment](t, objects, "Deployment", release).Spec.Template.Labels, service.Selector),
	} {
		if !holds {
			t.Errorf("found no %s", what)
		}
	}
}

func TestTheKeyAccessServiceIsReachedByClientsAndReachesWhatTheValuesSay(t *testing.T) {
	of := func(values ...string) networkingv1.NetworkPolicySpec {
		return find[networkingv1.NetworkPolicy](t, withKeyAccess(t, values...), "NetworkPolicy", keyAccess).Spec
	}
	spec := of()
	if len(spec.Ingress) != 2 || spec.Ingress[0].Ports[0].Port.IntVal != 8443 || len(spec.Ingress[0].From) > 0 || spec.Ingress[1].Ports[0].Port.IntVal != 8081 || len(spec.PolicyTypes) != 1 {
		t.Errorf("found %+v, want the ports 8443 and 8081 from everywhere", spec)
	}
	spec = of("keyAccess.networkPolicy.clientsFrom[0].podSelector.matchLabels.a=b", "keyAccess.networkPolicy.servers[0].ipBlock.cidr=198.51.100.0/24")
	if from := spec.Ingress[0].From; len(from) != 1 || from[0].PodSelector.MatchLabels["a"] != "b" {
		t.Errorf("found %+v, want the pods of the value", from)
	}
	if last := spec.Egress[len(spec.Egress)-1]; len(spec.Egress) != 3 || len(last.Ports) > 0 || last.To[0].IPBlock.CIDR != "198.51.100.0/24" {
		t.Errorf("found %+v, want the API server, DNS, issuers and peers", spec.Egress)
	}
}

func TestOneValuePermitsRegoInTheServiceAndAtAdmission(t *testing.T) {
	for value, want := range map[string]bool{"keyAccess.rego=true": true, "keyAccess.rego=false": false} {
		objects := withKeyAccess(t, value)
		for name, flag := range map[string]string{keyAccess: "--rego", release: "--key-access-rego-dir=/run/crypto-broker-rego/socket"} {
			args := find[appsv1.Deployment](t, objects, "Deployment", name).Spec.Template.Spec.Containers[0].Args
			if found := slices.Contains(args, flag); found != want {
				t.Errorf("%s: found %t for %s of %s, expected %t", value, found, flag, name, want)
			}
		}
		if containers := find[appsv1.Deployment](t, objects, "Deployment", release).Spec.Template.Spec.Containers; (len(containers) == 2) != want {
			t.Errorf("%s: found %d containers of the operator", value, len(containers))
		}
	}
}

func TestModulesAreCheckedInAContainerThatHasNothingElse(t *testing.T) {
	pod := find[appsv1.Deployment](t, withKeyAccess(t, "keyAccess.rego=true"), "Deployment", release).Spec.Template.Spec
	operator, check := pod.Containers[0], pod.Containers[1]
	mount := func(c corev1.Container, path string) *corev1.VolumeMount {
		for i := range c.VolumeMounts {
			if c.VolumeMounts[i].MountPath == path {
				return &c.VolumeMounts[i]
			}
		}
		return &corev1.VolumeMount{}
	}
	const sockets, token = "/run/crypto-broker-rego", "/var/run/secrets/kubernetes.io/serviceaccount"
	for what, holds := range map[string]bool{
		"the command of the gateway":        slices.Equal(check.Args, []string{"rego-check", "--socket-dir=" + sockets + "/socket"}) && strings.Contains(check.Image, "/gateway:"),
		"a socket that both see":            mount(check, sockets).Name == "rego" && mount(operator, sockets).Name == "rego" && mount(operator, sockets).ReadOnly,
		"an empty place for the token":      mount(check, token).Name == "no-token" && mount(operator, token).Name == "",
		"no environment, port and probe":    len(check.Env)+len(check.Ports) == 0 && check.LivenessProbe == nil && check.ReadinessProbe == nil,
		"a read-only root":                  *check.SecurityContext.ReadOnlyRootFilesystem,
		"more memory than a module may use": check.Resources.Limits.Memory().Value() >= 300<<20,
		"an answer while the operator ends": check.Lifecycle.PreStop.Sleep.Seconds == 5,
		"volumes that are empty":            !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.EmptyDir == nil }),
	} {
		if !holds {
			t.Errorf("found no %s", what)
		}
	}
}
