// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// otherInjectors make of a pod what the injectors of other projects do, in the
// shape that matters to ours: containers and their order, volumes, mounts,
// annotations, redirected probes, and who they run as.
var otherInjectors = map[string]func(*corev1.Pod){
	"istio-with-a-native-sidecar": istioNative,
	"istio-with-a-container":      istioClassic,
	"linkerd":                     linkerd,
	"vault":                       vault,
}

func env(pairs ...string) (variables []corev1.EnvVar) {
	for i := 0; i < len(pairs); i += 2 {
		variables = append(variables, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
	}
	return variables
}

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

func label(pod *corev1.Pod, pairs ...string) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	for i := 0; i < len(pairs); i += 2 {
		pod.Labels[pairs[i]] = pairs[i+1]
	}
}

func annotate(pod *corev1.Pod, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		pod.Annotations[pairs[i]] = pairs[i+1]
	}
}

func inMemory(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}
}

func empty(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

func token(name, audience, file string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o644),
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: audience, ExpirationSeconds: ptr.To[int64](43200), Path: file,
		}}},
	}}}
}

func mounts(pairs ...string) (mounts []corev1.VolumeMount) {
	for i := 0; i < len(pairs); i += 2 {
		mounts = append(mounts, corev1.VolumeMount{Name: pairs[i], MountPath: pairs[i+1]})
	}
	return mounts
}

func sized(cpu, memory, cpuLimit, memoryLimit string) corev1.ResourceRequirements {
	of := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	return corev1.ResourceRequirements{Requests: of(cpu, memory), Limits: of(cpuLimit, memoryLimit)}
}

// unprivileged runs as a user of the injector's own.
func unprivileged(user, group int64) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), Privileged: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
		RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(user), RunAsGroup: ptr.To(group),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// networkAdmin may redirect the pod's traffic.
func networkAdmin(user int64) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), Privileged: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(false),
		RunAsNonRoot: ptr.To(user != 0), RunAsUser: ptr.To(user), RunAsGroup: ptr.To(user),
		Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN", "NET_RAW"}, Drop: []corev1.Capability{"ALL"}},
	}
}

func httpProbe(path string, port int) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(port), Scheme: corev1.URISchemeHTTP}},
		FailureThreshold: 30, PeriodSeconds: 1, SuccessThreshold: 1, TimeoutSeconds: 3,
	}
}

func istioProxy() corev1.Container {
	return corev1.Container{
		Name: "istio-proxy", Image: "example.com/istio/proxyv2:1.29.0",
		Args: []string{"proxy", "sidecar", "--domain", "$(POD_NAMESPACE).svc.cluster.local", "--concurrency", "2"},
		Env:  append(env("PILOT_CERT_PROVIDER", "istiod", "CA_ADDR", "istiod.istio-system.svc:15012"), fromField("POD_NAME", "metadata.name"), fromField("POD_NAMESPACE", "metadata.namespace")),
		Ports: []corev1.ContainerPort{
			{Name: "http-envoy-prom", ContainerPort: 15090, Protocol: corev1.ProtocolTCP},
		},
		ReadinessProbe: httpProbe("/healthz/ready", 15021), StartupProbe: httpProbe("/healthz/ready", 15021),
		Resources: sized("10m", "40Mi", "2", "1Gi"), SecurityContext: unprivileged(1337, 1337),
		VolumeMounts: mounts("workload-socket", "/var/run/secrets/workload-spiffe-uds", "istiod-ca-cert", "/var/run/secrets/istio",
			"istio-data", "/var/lib/istio/data", "istio-envoy", "/etc/istio/proxy", "istio-token", "/var/run/secrets/tokens", "istio-podinfo", "/etc/istio/pod"),
	}
}

func istioInit() corev1.Container {
	return corev1.Container{
		Name: "istio-init", Image: "example.com/istio/proxyv2:1.29.0",
		Args:            []string{"istio-iptables", "-p", "15001", "-z", "15006", "-u", "1337", "-m", "REDIRECT", "-i", "*", "-b", "*", "-d", "15090,15021,15020"},
		Resources:       sized("10m", "40Mi", "2", "1Gi"),
		SecurityContext: networkAdmin(0),
	}
}

// istio is what both ways of Istio have in common.
func istio(pod *corev1.Pod) {
	label(pod, "security.istio.io/tlsMode", "istio", "service.istio.io/canonical-name", "app", "service.istio.io/canonical-revision", "latest")
	annotate(pod, "istio.io/rev", "default", "kubectl.kubernetes.io/default-container", "app",
		// It merges what is scraped of the app into its own.
		"prometheus.io/scrape", "true", "prometheus.io/port", "15020", "prometheus.io/path", "/stats/prometheus",
		"sidecar.istio.io/status", `{"initContainers":["istio-init"],"containers":["istio-proxy"],"revision":"default"}`)
	redirectProbes(pod)
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		empty("workload-socket"), inMemory("istio-envoy"), empty("istio-data"),
		corev1.Volume{Name: "istio-podinfo", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			DefaultMode: ptr.To[int32](0o644),
			Items: []corev1.DownwardAPIVolumeFile{
				{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.labels"}},
				{Path: "annotations", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations"}},
			},
		}}},
		token("istio-token", "istio-ca", "istio-token"),
		corev1.Volume{Name: "istiod-ca-cert", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "istio-ca-root-cert"}, DefaultMode: ptr.To[int32](0o644),
		}}})
}

// redirectProbes sends HTTP probes to the proxy, which passes them on.
func redirectProbes(pod *corev1.Pod) {
	each(pod, func(_ string, c *corev1.Container) {
		for kind, probe := range map[string]*corev1.Probe{"readyz": c.ReadinessProbe, "livez": c.LivenessProbe, "startupz": c.StartupProbe} {
			if probe != nil && probe.HTTPGet != nil {
				probe.HTTPGet = &corev1.HTTPGetAction{Path: "/app-health/" + c.Name + "/" + kind, Port: intstr.FromInt(15020), Scheme: corev1.URISchemeHTTP}
			}
		}
	})
}

// istioNative puts its sidecar before all other init containers, and behind the
// one that redirects the traffic.
func istioNative(pod *corev1.Pod) {
	istio(pod)
	proxy := istioProxy()
	proxy.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	pod.Spec.InitContainers = slices.Insert(pod.Spec.InitContainers, 0, istioInit(), proxy)
}

// istioClassic redirects the traffic after all other init containers, which so
// reach the network without the proxy.
func istioClassic(pod *corev1.Pod) {
	istio(pod)
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, istioInit())
	pod.Spec.Containers = append(pod.Spec.Containers, istioProxy())
}

func linkerd(pod *corev1.Pod) {
	label(pod, "linkerd.io/control-plane-ns", "linkerd", "linkerd.io/workload-ns", "shop")
	annotate(pod, "linkerd.io/inject", "enabled", "linkerd.io/created-by", "linkerd/proxy-injector edge-26.10.1", "linkerd.io/proxy-version", "edge-26.10.1")
	redirect := networkAdmin(65534)
	redirect.ReadOnlyRootFilesystem = ptr.To(true)
	redirect.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
		Name: "linkerd-init", Image: "example.com/linkerd/proxy-init:v2.5.0",
		Args:            []string{"--incoming-proxy-port", "4143", "--outgoing-proxy-port", "4140", "--proxy-uid", "2102", "--inbound-ports-to-ignore", "4190,4191"},
		SecurityContext: redirect,
		VolumeMounts:    mounts("linkerd-proxy-init-xtables-lock", "/run"),
	})
	pod.Spec.Containers = slices.Insert(pod.Spec.Containers, 0, corev1.Container{
		Name: "linkerd-proxy", Image: "example.com/linkerd/proxy:edge-26.10.1",
		Env: append(env("LINKERD2_PROXY_LOG", "warn", "LINKERD2_PROXY_INBOUND_LISTEN_ADDR", "[::]:4143"), fromField("_pod_ns", "metadata.namespace"), fromField("_pod_uid", "metadata.uid")),
		Ports: []corev1.ContainerPort{
			{Name: "linkerd-proxy", ContainerPort: 4143, Protocol: corev1.ProtocolTCP},
			{Name: "linkerd-admin", ContainerPort: 4191, Protocol: corev1.ProtocolTCP},
		},
		Lifecycle:     &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/usr/lib/linkerd/linkerd-await", "--timeout=2m", "--port=4191"}}}},
		LivenessProbe: httpProbe("/live", 4191), ReadinessProbe: httpProbe("/ready", 4191),
		SecurityContext: unprivileged(2102, 2102),
		VolumeMounts:    mounts("linkerd-identity-end-entity", "/var/run/linkerd/identity/end-entity", "linkerd-identity-token", "/var/run/secrets/tokens"),
	})
	pod.Spec.Volumes = append(pod.Spec.Volumes, empty("linkerd-proxy-init-xtables-lock"), inMemory("linkerd-identity-end-entity"),
		token("linkerd-identity-token", "identity.l5d.io", "linkerd-identity-token"))
}

// vault mounts its secrets into every container that is there, the broker's among
// them.
func vault(pod *corev1.Pod) {
	annotate(pod, "vault.hashicorp.com/agent-inject", "true", "vault.hashicorp.com/role", "shop", "vault.hashicorp.com/agent-inject-status", "injected")
	each(pod, func(_ string, c *corev1.Container) {
		c.VolumeMounts = append(c.VolumeMounts, mounts("vault-secrets", "/vault/secrets")...)
	})
	agent := func(name, home string) corev1.Container {
		return corev1.Container{
			Name: name, Image: "example.com/vault:1.22.0", Command: []string{"/bin/sh", "-ec"}, Args: []string{"vault agent -config=/home/vault/config.json"},
			Env:       append(env("VAULT_LOG_LEVEL", "info"), fromField("POD_IP", "status.podIP")),
			Resources: sized("250m", "64Mi", "500m", "128Mi"), SecurityContext: unprivileged(100, 1000),
			VolumeMounts: mounts(home, "/home/vault", "vault-secrets", "/vault/secrets"),
		}
	}
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, agent("vault-agent-init", "home-init"))
	pod.Spec.Containers = append(pod.Spec.Containers, agent("vault-agent", "home-sidecar"))
	pod.Spec.Volumes = append(pod.Spec.Volumes, inMemory("home-init"), inMemory("home-sidecar"), inMemory("vault-secrets"))
}
