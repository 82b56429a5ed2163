// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// monitor is what PodMonitors and ServiceMonitors have in common, as far as the chart sets
// it.
type monitor struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		NamespaceSelector   map[string]any `json:"namespaceSelector"`
		Endpoints           []endpoint     `json:"endpoints"`
		PodMetricsEndpoints []endpoint     `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type endpoint struct {
	Port              string           `json:"port"`
	Path              string           `json:"path"`
	Interval          string           `json:"interval"`
	Scheme            string           `json:"scheme"`
	BearerTokenFile   string           `json:"bearerTokenFile"`
	TLSConfig         map[string]any   `json:"tlsConfig"`
	Relabelings       []map[string]any `json:"relabelings"`
	MetricRelabelings []map[string]any `json:"metricRelabelings"`
}

func kinds(objects []*unstructured.Unstructured, kind string) (names []string) {
	for _, object := range objects {
		if object.GetKind() == kind {
			names = append(names, object.GetName())
		}
	}
	slices.Sort(names)
	return names
}

func TestWhatIsMonitoredIsWhatTheValuesSay(t *testing.T) {
	for sentence, test := range map[string]struct {
		set            string
		pods, services []string
	}{
		"nothing, by default":                          {"", nil, nil},
		"operator and brokers by pods":                 {"metrics.podMonitor.enabled=true", []string{release, release + "-brokers"}, nil},
		"the operator by its Service":                  {"metrics.serviceMonitor.enabled=true", nil, []string{release}},
		"the operator by its Service alone, not twice": {"metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true", []string{release + "-brokers"}, []string{release}},
		"no key gateway, by default":                   {"keyGateway.enabled=true", nil, nil},
		"the key gateway by its pods":                  {"keyGateway.enabled=true,metrics.podMonitor.enabled=true", []string{release, release + "-brokers", keyGateway}, nil},
		"the key access service by its pods":           {withKeyAccessValues + ",metrics.podMonitor.enabled=true", []string{release, release + "-brokers", keyAccess}, nil},
		"the key access service by its Service":        {withKeyAccessValues + ",metrics.serviceMonitor.enabled=true", nil, []string{release, keyAccess}},
		"the key gateway by its Service alone, not twice": {
			"keyGateway.enabled=true,metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true", []string{release + "-brokers"}, []string{release, keyGateway},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			objects := renderChart(t, "--set", test.set)
			if pods, services := kinds(objects, "PodMonitor"), kinds(objects, "ServiceMonitor"); !slices.Equal(pods, test.pods) || !slices.Equal(services, test.services) {
				t.Errorf("found the PodMonitors %q and the ServiceMonitors %q, expected %q and %q", pods, services, test.pods, test.services)
			}
		})
	}
}

func TestMonitorsHaveTheRelabelingsOfTheValuesAfterTheirOwn(t *testing.T) {
	objects := renderChart(t, everySwitchOn()...)
	brokers := find[monitor](t, objects, "PodMonitor", release+"-brokers").Spec.PodMetricsEndpoints[0]
	var targets []any
	for _, each := range brokers.Relabelings {
		targets = append(targets, each["targetLabel"])
	}
	if brokers.Relabelings[0]["regex"] != "crypto-broker;true" || !slices.Equal(targets, []any{nil, nil, "workload", "workload", "workload", "team"}) {
		t.Errorf("found the relabelings %v, expected the one that finds brokers, the one for the container, the ones for the workload, and then the user's", brokers.Relabelings)
	}
	// Prometheus would rename the label of a metric that the target has as well.
	if drop := brokers.Relabelings[1]; drop["action"] != "labeldrop" || drop["regex"] != "container" {
		t.Errorf("found the relabeling %v, expected one that drops the container of the target: the metrics have the container that called", drop)
	}
	operator := find[monitor](t, objects, "ServiceMonitor", release).Spec.Endpoints[0]
	gateway := find[monitor](t, objects, "ServiceMonitor", keyGateway).Spec.Endpoints[0]
	for _, each := range []endpoint{operator, gateway} {
		if len(each.Relabelings) != 1 || each.Relabelings[0]["targetLabel"] != "cluster" {
			t.Errorf("found the relabelings %v, expected the user's", each.Relabelings)
		}
	}
	for _, each := range []endpoint{brokers, operator, gateway} {
		if each.Interval != "15s" || each.Path != "/metrics" || len(each.MetricRelabelings) != 1 || each.MetricRelabelings[0]["action"] != "drop" {
			t.Errorf("found %+v, expected the interval and the relabeling of metrics", each)
		}
	}
}

func TestEachServiceMonitorSelectsOneServiceOfItsPods(t *testing.T) {
	objects := withGateway(t, "metrics.serviceMonitor.enabled=true", withKeyAccessValues)
	for name, port := range map[string]string{release: "metrics", keyGateway: "status", keyAccess: "status"} {
		monitor := find[monitor](t, objects, "ServiceMonitor", name).Spec
		template := find[appsv1.Deployment](t, objects, "Deployment", name).Spec.Template
		var selected []string
		for _, candidate := range kinds(objects, "Service") {
			service := find[corev1.Service](t, objects, "Service", candidate)
			if !has(service.Labels, monitor.Selector.MatchLabels) {
				continue
			}
			selected = append(selected, candidate)
			if !has(template.Labels, service.Spec.Selector) || len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Name != monitor.Endpoints[0].Port || service.Spec.Ports[0].TargetPort.StrVal != port {
				t.Errorf("found the Service %+v, expected it to select the pods of %s and their port %s", service.Spec, name, port)
			}
			for _, other := range []string{release, keyGateway, keyAccess} {
				if labels := find[appsv1.Deployment](t, objects, "Deployment", other).Spec.Template.Labels; other != name && has(labels, service.Spec.Selector) {
					t.Errorf("the Service %s selects the pods of %s, too", candidate, other)
				}
			}
		}
		if want := []string{name + "-metrics"}; !slices.Equal(selected, want) {
			t.Errorf("found the Services %q selected, expected %q", selected, want)
		}
		if !slices.ContainsFunc(template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == port }) {
			t.Errorf("the pods of %s have no port %s", name, port)
		}
	}
}

func TestSecureMetricsBringTheirRightsAndNoOther(t *testing.T) {
	without := strings.Split(rights(t, renderChart(t)), "\n")
	secure := renderChart(t, "--set", "metrics.secure=true,metrics.serviceMonitor.enabled=true")
	var more []string
	for line := range strings.SplitSeq(rights(t, secure), "\n") {
		if !slices.Contains(without, line) {
			more = append(more, line)
		}
	}
	role := release + "-metrics"
	want := []string{
		"ClusterRole " + role + " in the cluster: create tokenreviews.authentication.k8s.io",
		"ClusterRole " + role + "-reader in the cluster: [get] [/metrics]",
		"ServiceAccount " + releaseNamespace + "/" + release + " is bound to ClusterRole " + role + " in the cluster",
	}
	if !slices.Equal(more, want) {
		t.Errorf("found %q, expected %q", more, want)
	}
	scrape := find[monitor](t, secure, "ServiceMonitor", release).Spec.Endpoints[0]
	if scrape.Scheme != "https" || scrape.BearerTokenFile == "" || scrape.TLSConfig["insecureSkipVerify"] != nil ||
		scrape.TLSConfig["serverName"] != release+"-webhook."+releaseNamespace+".svc" {
		t.Errorf("found %+v, expected HTTPS with a token and a checked certificate", scrape)
	}
	template := find[appsv1.Deployment](t, secure, "Deployment", release).Spec.Template
	if !slices.Contains(template.Spec.Containers[0].Args, "--metrics-secure") || template.Annotations["prometheus.io/scheme"] != "https" {
		t.Errorf("found the arguments %q and the annotations %v, expected secure metrics", template.Spec.Containers[0].Args, template.Annotations)
	}
}
