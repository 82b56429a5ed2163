// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestRenderingTwiceGivesTheSameBytes(t *testing.T) {
	if first, second := mustTemplate(t), mustTemplate(t); !bytes.Equal(first, second) {
		t.Error("two renderings with the same values differ")
	}
	everything := everySwitchOn()
	if first, second := mustTemplate(t, everything...), mustTemplate(t, everything...); !bytes.Equal(first, second) {
		t.Error("two renderings with everything switched on differ")
	}
}

func TestNoLineEndsWithSpaces(t *testing.T) {
	spaces := regexp.MustCompile(`(?m)[ \t]+$`)
	for _, arguments := range [][]string{nil, everySwitchOn(), {"--set", "injection.mode=policy"}} {
		if rendered := mustTemplate(t, arguments...); spaces.Match(rendered) {
			line := 1 + bytes.Count(rendered[:spaces.FindIndex(rendered)[0]], []byte("\n"))
			t.Errorf("with %q, line %d of the rendered chart ends with spaces", arguments, line)
		}
	}
}

func TestNothingIsFilledInForTheCABundle(t *testing.T) {
	for _, object := range renderChart(t, everySwitchOn()...) {
		if bytes.Contains(mustJSON(t, object), []byte("caBundle")) {
			t.Errorf("%s has a caBundle, expected it to be left to the operator", identity(object))
		}
	}
}

func TestAWrongValueIsRefusedWithItsPath(t *testing.T) {
	tests := map[string]struct {
		arguments []string
		want      string
	}{
		"a misspelt value":                    {[]string{"--set", "replicaCount=2"}, "additional properties 'replicaCount' not allowed"},
		"a misspelt nested value":             {[]string{"--set", "broker.image.tagg=1"}, "at '/broker/image': additional properties 'tagg' not allowed"},
		"no replica":                          {[]string{"--set", "replicas=0"}, "at '/replicas'"},
		"a socket group of 65536":             {[]string{"--set", "broker.socketGroup=65536"}, "at '/broker/socketGroup'"},
		"a privileged status port":            {[]string{"--set", "broker.statusPort=80"}, "at '/broker/statusPort'"},
		"a memory limit that is no quantity":  {[]string{"--set", "broker.resources.limits.memory=much"}, "at '/broker/resources/limits/memory'"},
		"a memory limit below 32Mi":           {[]string{"--set", "broker.resources.limits.memory=31.9Mi"}, "broker.resources.limits.memory is 31.9Mi, expected at least 32Mi, or 0 for no limit"},
		"a memory limit of thousandths":       {[]string{"--set", "broker.resources.limits.memory=1000000000m"}, "broker.resources.limits.memory is 1000000000m, expected at least 32Mi"},
		"a memory limit of few bytes":         {[]string{"--set", "broker.resources.limits.memory=33554431"}, "broker.resources.limits.memory is 33554431, expected at least 32Mi"},
		"a CPU limit of the broker":           {[]string{"--set", "broker.resources.limits.cpu=1"}, "additional properties 'cpu' not allowed"},
		"a tag that is no tag":                {[]string{"--set", "image.tag=a b"}, "at '/image/tag'"},
		"a digest that is no digest":          {[]string{"--set", "image.digest=sha256:1"}, "at '/image/digest'"},
		"a pull policy that is none":          {[]string{"--set", "image.pullPolicy=Sometimes"}, "at '/image/pullPolicy'"},
		"a propagation that is none":          {[]string{"--set", "propagation=pigeon"}, "at '/propagation'"},
		"a log level that is none":            {[]string{"--set", "logLevel=loud"}, "at '/logLevel'"},
		"a protocol of traces that is none":   {[]string{"--set", "broker.traces.protocol=thrift"}, "at '/broker/traces/protocol'"},
		"a sampler that is none":              {[]string{"--set", "broker.traces.sampler=jaeger_remote"}, "at '/broker/traces/sampler'"},
		"a part that is above the whole":      {[]string{"--set", "broker.traces.samplerArgument=1.5"}, "at '/broker/traces/samplerArgument'"},
		"a key of audit records that are off": {[]string{"--set", "audit.keySecret=k"}, "audit.keySecret is k, expected none without audit.enabled=true"},
		"a collector of no authority":         {[]string{"--set", "broker.traces.endpoint=https://c:4317"}, `broker.traces.caBundle has no certificate, expected PEM with the certificate authorities of "https://c:4317"`},
		"authorities without TLS":             {[]string{"--set", "broker.traces.endpoint=http://c:4317,broker.traces.caBundle=-----BEGIN CERTIFICATE-----"}, `broker.traces.caBundle is set, expected nothing, because broker.traces.endpoint is "http://c:4317"`},
		"authorities with a private key":      {[]string{"--set", "broker.traces.endpoint=https://c:4317,broker.traces.caBundle=-----BEGIN CERTIFICATE----------BEGIN PRIVATE KEY-----"}, "broker.traces.caBundle has a private key, expected PEM with only certificates"},
		"records for a collector with a path": {[]string{"--set", "broker.audit.endpoint=http://c:4317/v1/logs"}, `broker.audit.endpoint is "http://c:4317/v1/logs", expected one without a path`},
		"records for no authority":            {[]string{"--set", "broker.audit.endpoint=https://c:4317"}, `broker.audit.caBundle has no certificate`},
		"authorities of records of nobody":    {[]string{"--set", "broker.audit.caBundle=-----BEGIN CERTIFICATE-----"}, `broker.audit.caBundle is set, expected nothing without broker.audit.endpoint`},
		"a collector of records that are off": {[]string{"--set", "audit.endpoint=http://c"}, `audit.endpoint is http://c, expected none without audit.enabled=true`},
		"authorities of no collector":         {[]string{"--set", "audit.enabled=true,audit.caBundle=-----BEGIN CERTIFICATE-----"}, `audit.caBundle is set, expected nothing without audit.endpoint`},
		"the operator's records for nobody":   {[]string{"--set", "audit.enabled=true,audit.endpoint=https://c"}, `audit.caBundle has no certificate, expected PEM with the certificate authorities of "https://c", because the operator's image has no authorities`},
		"traces of changes for nobody":        {[]string{"--set", "traces.caBundle=-----BEGIN CERTIFICATE-----"}, `traces.caBundle is set, expected nothing without traces.endpoint`},
		"traces of changes with a path":       {[]string{"--set", "traces.endpoint=http://c:4317/v1/traces"}, `traces.endpoint is "http://c:4317/v1/traces", expected one without a path`},
		"traces for no authority":             {[]string{"--set", "traces.endpoint=https://c"}, `traces.caBundle has no certificate, expected PEM with the certificate authorities of "https://c", because the operator's image has no authorities`},
		"a collector that is no URL":          {[]string{"--set", "broker.traces.endpoint=c:4317"}, `broker.traces.endpoint is "c:4317", expected a URL such as`},
		"a collector at a port of none":       {[]string{"--set", "broker.traces.endpoint=http://c:65536"}, `broker.traces.endpoint is "http://c:65536", expected a URL such as`},
		"a collector with a password":         {[]string{"--set", "broker.traces.endpoint=http://a:b@c:4317"}, `broker.traces.endpoint is "http://a:b@c:4317", expected a URL such as`},
		"a path for gRPC":                     {[]string{"--set", "broker.traces.endpoint=http://c:4317/v1/traces"}, `broker.traces.endpoint is "http://c:4317/v1/traces", expected one without a path`},
		"the kubelet's port on the host":      {[]string{"--set", "hostNetwork=true"}, "webhook.port is 10250, which the kubelet holds on every node"},
		"no account and no name of one":       {[]string{"--set", "serviceAccount.create=false"}, "serviceAccount.name is empty"},
		"a namespace that can't be one":       {[]string{"--set", "webhook.excludedNamespaces={legacy,Bad_NS}"}, `webhook.excludedNamespaces has "Bad_NS", expected the name of a namespace`},
		"an excluded namespace without name":  {[]string{"--set-string", "webhook.excludedNamespaces[0]="}, `webhook.excludedNamespaces has "", expected the name of a namespace`},
		"a text that is no object":            {[]string{"--set", "extraObjects={name}"}, `extraObjects[0] has "name", expected an object of Kubernetes with apiVersion and kind`},
		"an object without a kind":            {[]string{"--set-json", `extraObjects=["# nothing","apiVersion: v1\nkind: Secret\n---\napiVersion: v1"]`}, `extraObjects[1] has "apiVersion: v1", expected an object of Kubernetes with apiVersion and kind`},
		"alerts in no namespace":              {[]string{"--set", "alerts.namespace=Bad_NS"}, `alerts.namespace is "Bad_NS", expected the name of a namespace`},
		"a dashboard in no namespace":         {[]string{"--set", "dashboard.namespace=Bad_NS"}, `dashboard.namespace is "Bad_NS", expected the name of a namespace`},
		"equal ports":                         {[]string{"--set", "health.port=8080"}, "health.port and metrics.port are both 8080, expected different ports"},
		"equal ports of webhook and health":   {[]string{"--set", "webhook.port=8081"}, "health.port and webhook.port are both 8081, expected different ports"},
		"the kubelet's port for metrics":      {[]string{"--set", "hostNetwork=true,webhook.port=10260,metrics.port=10250"}, "metrics.port is 10250, which the kubelet holds on every node"},
		"a request above the limit":           {[]string{"--set", "broker.resources.requests.memory=1Gi"}, "broker.resources.requests.memory is 1Gi, expected at most the limit, which is 128Mi"},
		"a signing key of no time":            {[]string{"--set", "signing.keyLifetime=0h"}, "at '/signing/keyLifetime'"},
		"a label that the chart sets":         {[]string{"--set", `commonLabels.app\.kubernetes\.io/name=a`}, `a value has the label "app.kubernetes.io/name" with "a", expected another label`},
		"a probe that asks something else":    {[]string{"--set", "livenessProbe.httpGet.path=/"}, "at '/livenessProbe'"},
		"an IP family that is none":           {[]string{"--set", "webhook.service.ipFamilies={IPv5}"}, "at '/webhook/service/ipFamilies/0'"},
		"secure metrics without a token":      {[]string{"--set", "metrics.secure=true,metrics.podMonitor.enabled=true"}, "metrics.serviceMonitor.enabled is false, expected true with metrics.secure=true and metrics.podMonitor.enabled=true"},
		"a Secret of the operator":            {[]string{"--set", "keyGateway.enabled=true,keyGateway.secrets={kms,crypto-broker-operator-signing}"}, `keyGateway.secrets has "crypto-broker-operator-signing", expected Secrets with credentials of key managers`},
		"the operator's account":              {[]string{"--set", "keyGateway.enabled=true,keyGateway.serviceAccount.name=crypto-broker-operator"}, `keyGateway.serviceAccount.name is "crypto-broker-operator", expected another account than the operator's`},
		"a gateway beside policies":           {[]string{"--set", "keyGateway.enabled=true,injection.mode=policy", "--kube-version", "1.36.0"}, "keyGateway.enabled is true with injection.mode=policy, expected injection.mode=webhook"},
		"certificates on an old Kubernetes":   {[]string{"--set", "keyGateway.enabled=true,keyGateway.brokerCertificates=issued", "--kube-version", "1.36.2"}, "keyGateway.brokerCertificates is issued and the cluster is Kubernetes v1.36.2, expected no value, or a cluster that serves PodCertificateRequest"},
		"certificates without a key gateway":  {[]string{"--set", "keyGateway.brokerCertificates=required", "--kube-version", "1.37.0"}, "keyGateway.brokerCertificates is required, expected no value without keyGateway.enabled=true"},
		"certificates of another kind":        {[]string{"--set", "keyGateway.enabled=true,keyGateway.brokerCertificates=true"}, "at '/keyGateway/brokerCertificates'"},
		"a gateway without an account":        {[]string{"--set", "keyGateway.enabled=true,keyGateway.serviceAccount.create=false"}, "keyGateway.serviceAccount.name is empty"},
		"a Secret of every name":              {[]string{"--set", "keyGateway.secrets={*}"}, "at '/keyGateway/secrets/0'"},
		"a gateway without time to end":       {[]string{"--set", "keyGateway.terminationGracePeriodSeconds=5"}, "at '/keyGateway/terminationGracePeriodSeconds'"},
		"key access without a configuration":  {[]string{"--set", "keyAccess.enabled=true,keyAccess.keysSecret=a,keyAccess.certificateSecret=b"}, "keyAccess.configMap is empty, expected the ConfigMap whose entry config.yaml is the configuration of the service"},
		"key access without keys":             {[]string{"--set", "keyAccess.enabled=true,keyAccess.configMap=a,keyAccess.certificateSecret=b"}, "keyAccess.keysSecret is empty, expected the Secret with the keys of the service"},
		"key access without a certificate":    {[]string{"--set", "keyAccess.enabled=true,keyAccess.configMap=a,keyAccess.keysSecret=b"}, "keyAccess.certificateSecret is empty, expected the Secret with the certificate of the service"},
		"key access with the operator's keys": {[]string{"--set", "keyAccess.enabled=true,keyAccess.configMap=a,keyAccess.keysSecret=crypto-broker-operator-signing,keyAccess.certificateSecret=b"}, `keyAccess.keysSecret is "crypto-broker-operator-signing", expected a Secret of the key access service`},
		"key access as the operator":          {[]string{"--set", "keyAccess.enabled=true,keyAccess.configMap=a,keyAccess.keysSecret=b,keyAccess.certificateSecret=c,keyAccess.serviceAccount.name=crypto-broker-operator"}, `keyAccess.serviceAccount.name is "crypto-broker-operator", expected another account than the operator's`},
		"key access as the key gateway":       {[]string{"--set", "keyGateway.enabled=true,keyAccess.enabled=true,keyAccess.configMap=a,keyAccess.keysSecret=b,keyAccess.certificateSecret=c,keyAccess.serviceAccount.name=crypto-broker-operator-key-gateway"}, "expected another account than the key gateway's"},
		"key access by a port of each node":   {[]string{"--set", "keyAccess.service.type=NodePort"}, "at '/keyAccess/service/type'"},
		"switched off, and rendered":          {[]string{"--set", "enabled=false"}, `enabled is false, expected a parent chart that leaves this one out: give its dependency on crypto-broker-operator the line "condition: crypto-broker-operator.enabled"`},
		"policies on a Kubernetes of today": {[]string{"--set", "injection.mode=policy", "--kube-version", "1.35.2"},
			`injection.mode is "policy" and the cluster is Kubernetes v1.35.2, expected one that serves MutatingAdmissionPolicy (admissionregistration.k8s.io/v1), as 1.36 and newer do`},
		"policies on a cluster that does not serve them": {[]string{"--set", "injection.mode=policy", "--kube-version", "1.36.0", "--api-versions", "v1/Pod"}, "expected one that serves MutatingAdmissionPolicy"},
		"a value that is taken away":                     {[]string{"--set", "replicas=null"}, "at '': missing property 'replicas'"},
		"a policy that is taken away":                    {[]string{"--set", "policies.brokerExec=null"}, "at '/policies': missing property 'brokerExec'"},
		"a label of pods that the chart sets":            {[]string{"--set", `podLabels.app\.kubernetes\.io/name=a`}, `a value has the label "app.kubernetes.io/name" with "a", expected another label`},
		"a label of a gateway that the chart sets":       {[]string{"--set", `keyGateway.enabled=true,keyGateway.podLabels.app\.kubernetes\.io/component=a`}, `a value has the label "app.kubernetes.io/component" with "a", expected another label`},
		"a label that can't be one":                      {[]string{"--set", "commonLabels.team=a b"}, "at '/commonLabels/team': 'a b' does not match pattern"},
		"an annotation that can't be one":                {[]string{"--set", "podAnnotations.a b=c"}, "at '/podAnnotations': additional properties 'a b' not allowed"},
		"a registry that is a URL":                       {[]string{"--set", "image.registry=https://registry.example"}, "at '/image/registry'"},
		"a repository with a tag":                        {[]string{"--set", "broker.image.repository=broker:1.2"}, "at '/broker/image/repository'"},
		"an amount of memory that is none":               {[]string{"--set", "resources.limits.memory=lots"}, "at '/resources/limits/memory': 'lots' does not match pattern"},
		"a misspelt limit":                               {[]string{"--set", "keyGateway.resources.limit.memory=1Gi"}, "at '/keyGateway/resources': additional properties 'limit' not allowed"},
		"an account that can't be one":                   {[]string{"--set", "serviceAccount.name=Bad_Name"}, "at '/serviceAccount/name'"},
		"a pull secret that can't be one":                {[]string{"--set", "imagePullSecrets[0].name=Bad_Name"}, "at '/imagePullSecrets/0/name'"},
		"an issuer without a name":                       {[]string{"--set", "certManager.enabled=true,certManager.issuerRef.kind=ClusterIssuer"}, "at '/certManager/issuerRef': properties 'name' required, if 'kind' exists"},
		"a name that a Service can't have":               {[]string{"--set", "fullnameOverride=1st"}, `the name of the objects is "1st", expected lower-case letters, digits and hyphens after a letter`},
		"a selector of namespaces that is none":          {[]string{"--set", "catalogue.enabled=true,catalogue.namespaces=environment in prod"}, `catalogue.namespaces is "environment in prod", expected a label selector such as environment=production or "team in (a,b)"`},
		"certificates of what is not installed":          {[]string{"--set", "certManager.enabled=true", "--api-versions", "v1/Pod"}, "certManager.enabled is true, expected false, or a cluster that serves cert-manager.io/v1/Certificate: install cert-manager first"},
		"alerts for what is not installed":               {[]string{"--set", "alerts.enabled=true", "--api-versions", "v1/Pod"}, "alerts.enabled is true, expected false, or a cluster that serves monitoring.coreos.com/v1/PrometheusRule: install the Prometheus operator first"},
		"a Kubernetes that is too old":                   {[]string{"--kube-version", "1.29.9"}, "incompatible with Kubernetes v1.29.9"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := helmTemplate(t.Context(), test.arguments...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("found %v, expected a refusal with %q", err, test.want)
			}
		})
	}
}

// hack/cluster has an API server of the oldest Kubernetes, on which make test-apiserver KUBERNETES=VERSION runs.
func TestTheChartAllowsNoKubernetesThatIsOlderThanTheTestedOnes(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(repository, "hack", "cluster", "apiserver-*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) == 0 {
		t.Fatal("found no API server in hack/cluster, expected the one of the oldest Kubernetes")
	}
	oldest := strings.TrimPrefix(filepath.Base(slices.Min(folders)), "apiserver-")
	if found, want := readMetadata(t).KubeVersion, ">="+oldest+".0-0"; found != want {
		t.Errorf("found the kubeVersion %q in Chart.yaml, expected %q: the oldest API server of the tests is from Kubernetes %s", found, want, oldest)
	}
}

func TestAValueReachesTheOperator(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	argument := func(want string) func(*testing.T, corev1.PodSpec) {
		return func(t *testing.T, spec corev1.PodSpec) {
			for _, found := range spec.Containers[0].Args {
				if found == want {
					return
				}
			}
			t.Errorf("found the arguments %q, expected %q among them", spec.Containers[0].Args, want)
		}
	}
	image := func(want string) func(*testing.T, corev1.PodSpec) {
		return func(t *testing.T, spec corev1.PodSpec) {
			if found := spec.Containers[0].Image; found != want {
				t.Errorf("found the image %q, expected %q", found, want)
			}
		}
	}
	tests := map[string]struct {
		set   string
		check func(*testing.T, corev1.PodSpec)
	}{
		"the default image":               {"", image("ghcr.io/crypto-broker/operator:" + appVersion(t))},
		"a registry":                      {"image.registry=registry.example/team/", image("registry.example/team/operator:" + appVersion(t))},
		"no registry":                     {"image.registry=,image.repository=localhost/crypto-broker/operator,image.tag=dev", image("localhost/crypto-broker/operator:dev")},
		"a digest, over a tag":            {"image.tag=v1,image.digest=" + digest, image("ghcr.io/crypto-broker/operator@" + digest)},
		"the default broker image":        {"", argument("--broker-image=ghcr.io/crypto-broker/broker:" + appVersion(t))},
		"a broker image":                  {"broker.image.registry=localhost,broker.image.repository=crypto-broker/broker,broker.image.tag=dev", argument("--broker-image=localhost/crypto-broker/broker:dev")},
		"a broker digest":                 {"broker.image.digest=" + digest, argument("--broker-image=ghcr.io/crypto-broker/broker@" + digest)},
		"a broker with OpenSSL":           {"broker.tlsProvider=openssl", argument("--broker-image=ghcr.io/crypto-broker/broker-openssl:" + appVersion(t))},
		"a digest with OpenSSL":           {"broker.tlsProvider=openssl,broker.image.digest=" + digest, argument("--broker-image=ghcr.io/crypto-broker/broker-openssl@" + digest)},
		"images that pods may choose":     {"broker.allowedImages={registry.example/broker:1.2.3,registry.example:5000/fips@" + digest + "}", argument("--allowed-broker-images=registry.example/broker:1.2.3,registry.example:5000/fips@" + digest)},
		"the broker's pull policy":        {"broker.image.pullPolicy=Never", argument("--broker-image-pull-policy=Never")},
		"the socket group":                {"broker.socketGroup=65535", argument("--socket-group=65535")},
		"the status port":                 {"broker.statusPort=9999", argument("--broker-status-port=9999")},
		"brokers that require FIPS 140-3": {"broker.requireFIPS=true", argument("--broker-require-fips")},
		"the broker's log level":          {"broker.logLevel=debug", argument("--broker-log-level=debug")},
		"the collector of traces":         {"broker.traces.endpoint=http://c:4317", argument("--broker-traces-endpoint=http://c:4317")},
		"a collector with TLS":            {"broker.traces.endpoint=https://c:4317,broker.traces.caBundle=-----BEGIN CERTIFICATE-----", argument("--broker-traces-ca-bundle=-----BEGIN CERTIFICATE-----")},
		"the collector of audit records":  {"broker.audit.endpoint=http://c:4317", argument("--broker-audit-endpoint=http://c:4317")},
		"its authorities":                 {"broker.audit.endpoint=https://c:4317,broker.audit.caBundle=-----BEGIN CERTIFICATE-----", argument("--broker-audit-ca-bundle=-----BEGIN CERTIFICATE-----")},
		"the collector of the operator":   {"audit.enabled=true,audit.endpoint=http://c:4317", argument("--audit-otlp-endpoint=http://c:4317")},
		"and its authorities":             {"audit.enabled=true,audit.endpoint=https://c:4317,audit.caBundle=-----BEGIN CERTIFICATE-----", argument("--audit-otlp-ca-bundle=-----BEGIN CERTIFICATE-----")},
		"the collector of changes":        {"traces.endpoint=http://c:4317", argument("--traces-endpoint=http://c:4317")},
		"all changes":                     {"traces.endpoint=http://c:4317", argument("--traces-ratio=1")},
		"a part of the changes":           {"traces.endpoint=http://c:4317,traces.ratio=0.25", argument("--traces-ratio=0.25")},
		"the authorities of changes":      {"traces.endpoint=https://c:4317,traces.caBundle=-----BEGIN CERTIFICATE-----", argument("--traces-ca-bundle=-----BEGIN CERTIFICATE-----")},
		"the protocol of traces":          {"broker.traces.endpoint=http://c:4318/otlp,broker.traces.protocol=http/json", argument("--broker-traces-protocol=http/json")},
		"the sampler of traces":           {"broker.traces.endpoint=http://c,broker.traces.sampler=always_off", argument("--broker-traces-sampler=always_off")},
		"the part of traces":              {"broker.traces.endpoint=http://c,broker.traces.samplerArgument=0.01", argument("--broker-traces-sampler-argument=0.01")},
		"all traces":                      {"broker.traces.endpoint=http://c", argument("--broker-traces-sampler-argument=1")},
		"the broker's CPU request":        {"broker.resources.requests.cpu=100m", argument("--broker-cpu-request=100m")},
		"the broker's memory request":     {"broker.resources.requests.memory=64Mi", argument("--broker-memory-request=64Mi")},
		"the broker's memory limit":       {"broker.resources.limits.memory=2Gi", argument("--broker-memory-limit=2Gi")},
		"the propagation":                 {"propagation=kubelet", argument("--propagation=kubelet")},
		"the log level":                   {"logLevel=debug", argument("--log-level=debug")},
		"the log format":                  {"logFormat=text", argument("--log-format=text")},
		"a memory limit in bytes":         {"broker.resources.limits.memory=134217728", argument("--broker-memory-limit=134217728")},
		"the least memory limit":          {"broker.resources.limits.memory=32Mi", argument("--broker-memory-limit=32Mi")},
		"no memory limit":                 {"broker.resources.limits.memory=0", argument("--broker-memory-limit=0")},
		"the webhook's port":              {"webhook.port=9443", argument("--webhook-port=9443")},
		"the port of the metrics":         {"metrics.port=9090", argument("--metrics-bind-address=:9090")},
		"the port of the health":          {"health.port=9091", argument("--health-probe-bind-address=:9091")},
		"an argument of the user's":       {"extraArgs={--a=b}", argument("--a=b")},
		"a full name in the webhook's":    {"fullnameOverride=broker", argument("--webhook-service-name=broker-webhook")},
		"a full name in the CA's":         {"fullnameOverride=broker", argument("--ca-secret-name=broker-ca")},
		"a full name in the webhooks'":    {"fullnameOverride=broker", argument("--mutating-webhook-configuration=broker")},
		"a full name in the validation's": {"fullnameOverride=broker", argument("--validating-webhook-configuration=broker")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := renderChart(t, "--set", test.set)
			deployments := 0
			for _, object := range objects {
				if object.GetKind() == "Deployment" {
					deployments++
					test.check(t, find[appsv1.Deployment](t, objects, "Deployment", object.GetName()).Spec.Template.Spec)
				}
			}
			if deployments != 1 {
				t.Errorf("found %d Deployments, expected 1", deployments)
			}
		})
	}
}

func TestANamespaceWhoseNameYAMLWouldReadAsSomethingElseIsExcluded(t *testing.T) {
	objects := renderChart(t, "--set-string", "webhook.excludedNamespaces={123,on}")
	webhooks := find[admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration", release)
	want := []string{"kube-system", "kube-node-lease", releaseNamespace, "123", "on"}
	for _, webhook := range webhooks.Webhooks {
		for _, requirement := range webhook.NamespaceSelector.MatchExpressions {
			if requirement.Key == corev1.LabelMetadataName && !slices.Equal(requirement.Values, want) {
				t.Errorf("%s leaves out the namespaces %q, expected %q", webhook.Name, requirement.Values, want)
			}
		}
	}
}

// YAML reads some names as a number or as true or false, unless they are quoted.
func TestNamesThatYAMLWouldReadAsSomethingElseStayNames(t *testing.T) {
	names := map[string]string{
		"alder": "true", "birch": "123", "cedar": "yes", "dogwood": "on", "ebony": "10", "hazel": "1e3", "juniper": "0x1f", "laurel": "null",
		"maple": "12", "poplar": "345", "rowan": "off", "spruce": "0b1", "sycamore": "456", "willow": "789",
	}
	render := func(name func(string) string) string {
		t.Helper()
		var values []string
		for value, plain := range map[string]string{
			"fullnameOverride": "cedar", "nameOverride": "dogwood", "priorityClassName": "ebony",
			"serviceAccount.name": "hazel", "keyGateway.serviceAccount.name": "juniper", "keyAccess.serviceAccount.name": "laurel",
			"keyAccess.configMap": "maple", "keyAccess.keysSecret": "poplar", "keyAccess.certificateSecret": "rowan",
			"audit.keySecret": "spruce", "alerts.namespace": "sycamore", "dashboard.namespace": "willow",
		} {
			values = append(values, value+"="+name(plain))
		}
		rendered, err := renderAs(t.Context(), name("alder"), name("birch"), append(everySwitchOn(), "--set-string", strings.Join(values, ","))...)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, object := range parse(t, rendered) {
			encoded, err := json.MarshalIndent(object.Object, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			text.Write(encoded)
		}
		return text.String()
	}
	want := render(func(plain string) string { return plain })
	for plain, odd := range names {
		want = strings.ReplaceAll(want, plain, odd)
	}
	if diff := cmp.Diff(want, render(func(plain string) string { return names[plain] })); diff != "" {
		t.Errorf("the objects differ from those with other names (-other +these):\n%s", diff)
	}
}

func TestPodsAreScheduledAsValuesSay(t *testing.T) {
	objects := renderChart(t, "--set", strings.Join([]string{
		"replicas=3", "hostNetwork=true", "webhook.port=10260", "priorityClassName=system-cluster-critical",
		"nodeSelector.pool=system", "tolerations[0].operator=Exists", "imagePullSecrets[0].name=registry",
		"podLabels.team=crypto", "podAnnotations.example\\.com/a=b", "terminationGracePeriodSeconds=45",
		"topologySpreadConstraints[0].maxSkew=1", "topologySpreadConstraints[0].topologyKey=rack",
		"topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule",
	}, ","))
	deployment := find[appsv1.Deployment](t, objects, "Deployment", release)
	template := deployment.Spec.Template
	selected := func() bool {
		for key, value := range deployment.Spec.Selector.MatchLabels {
			if template.Labels[key] != value {
				return false
			}
		}
		return true
	}
	for what, holds := range map[string]bool{
		"three replicas":                    *deployment.Spec.Replicas == 3,
		"the host's network":                template.Spec.HostNetwork && template.Spec.DNSPolicy == corev1.DNSClusterFirstWithHostNet,
		"room for a successor on the host":  deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() == 1,
		"the priority class":                template.Spec.PriorityClassName == "system-cluster-critical",
		"the node selector":                 template.Spec.NodeSelector["pool"] == "system",
		"the toleration":                    len(template.Spec.Tolerations) == 1 && template.Spec.Tolerations[0].Operator == corev1.TolerationOpExists,
		"the pull secret":                   len(template.Spec.ImagePullSecrets) == 1 && template.Spec.ImagePullSecrets[0].Name == "registry",
		"the label":                         template.Labels["team"] == "crypto",
		"the annotation":                    template.Annotations["example.com/a"] == "b",
		"the grace period":                  *template.Spec.TerminationGracePeriodSeconds == 45,
		"labels that the selector asks for": selected(),
		"the constraint, with a selector": len(template.Spec.TopologySpreadConstraints) == 1 &&
			template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels["app.kubernetes.io/instance"] == release,
	} {
		if !holds {
			t.Errorf("found no %s in the Deployment", what)
		}
	}
}

func TestTheOperatorKnowsEveryArgument(t *testing.T) {
	help, err := run(t.Context(), "go", "run", filepath.Join(repository, "cmd", "operator"), "--help")
	if err != nil {
		t.Fatal(err)
	}
	arguments := find[appsv1.Deployment](t, renderChart(t, everySwitchOn()...), "Deployment", release).Spec.Template.Spec.Containers[0].Args
	if len(arguments) == 0 {
		t.Error("found no arguments of the operator")
	}
	for _, argument := range arguments {
		name, _, _ := strings.Cut(argument, "=")
		if !regexp.MustCompile(`(?m)^\s+` + regexp.QuoteMeta(name) + `\s`).Match(help) {
			t.Errorf("the operator has no flag %s; it knows\n%s", name, help)
		}
	}
}

func TestALargeNumberOfAFileIsNotRounded(t *testing.T) {
	const want = "--broker-memory-limit=134217728"
	if rendered := mustTemplate(t, everySwitchOn()...); !bytes.Contains(rendered, []byte(want+"\n")) {
		t.Errorf("found no %s in what testdata/everything.yaml renders", want)
	}
}

// A missing environment variable of the operator is "".
func TestTheCollectorOfTheOperatorKnowsItsMemoryLimit(t *testing.T) {
	for limit, want := range map[string]string{"512Mi": "469762048", "1Gi": "939524096", "1.5Gi": "1409286144", "800000000": "700000000", "0": ""} {
		deployment := find[appsv1.Deployment](t, renderChart(t, "--set-string", "resources.limits.memory="+limit), "Deployment", release)
		found := ""
		for _, variable := range deployment.Spec.Template.Spec.Containers[0].Env {
			if variable.Name == "GOMEMLIMIT" {
				found = variable.Value
			}
		}
		if found != want {
			t.Errorf("with a limit of %s GOMEMLIMIT is %q, expected %q", limit, found, want)
		}
	}
}
