// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/controllers/catalogue"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/annotation"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// Values of --propagation: how a set of profiles reaches running pods.
const (
	propagationAnnotation = "annotation"
	propagationKubelet    = "kubelet"
)

// config has the settings of the command line.
type config struct {
	namespace   string
	leaderElect bool
	// excludedNamespaces, catalogue and the selector are flags.
	excludedNamespaces []string
	catalogue          string
	catalogueLabels    string
	propagation        string

	metricsAddress string
	healthAddress  string

	enableWebhooks          bool
	webhookPort             int
	webhookService          string
	caSecret                string
	mutatingConfiguration   string
	injectionTemplate       string
	validatingConfiguration string
	// keyGatewayService is empty if there is no key gateway.
	keyGatewayService string
	// brokerCertificates gives brokers certificates for the key gateway.
	brokerCertificates bool
	// keyAccessRegoDir has the socket of gateway rego-check. It is empty if KeyAccessPolicies in Rego are off.
	keyAccessRegoDir string

	brokerImage         string
	allowedBrokerImages []string
	brokerPullPolicy    string
	brokerStatusPort    int32
	brokerCPURequest    string
	brokerMemoryRequest string
	brokerMemoryLimit   string
	brokerLogLevel      string
	minimumStrength     int
	brokerRequireFIPS   bool
	brokerTraces        template.Traces
	brokerAudit         template.Audit
	socketGroup         int64

	audit   auditConfig
	traces  changeTraces
	signing signingConfig
	serving servingConfig

	logLevel  string
	logFormat string

	// The fields below are parsed from the texts above by check.
	catalogueProfiles []string
	catalogueSelector *metav1.LabelSelector
	brokerResources   corev1.ResourceRequirements
	level             slog.Level
}

// flags binds the command line to the config, with the defaults.
func (c *config) flags() *pflag.FlagSet {
	f := program.Flags("operator")

	f.StringVar(&c.namespace, "namespace", "", "`namespace` that the operator runs in; its pods get no broker and it gets no profiles [POD_NAMESPACE]")
	f.BoolVar(&c.leaderElect, "leader-elect", true, "let only one replica at a time write profiles, by a Lease in the operator's namespace")
	f.StringVar(&c.propagation, "propagation", propagationAnnotation, "`how` changed profiles reach running pods: annotation makes the kubelets refresh them at once (about a second), kubelet waits for their own resync (up to 90 s)")

	f.StringSliceVar(&c.excludedNamespaces, "excluded-namespaces", nil, "`namespaces`, separated by commas, that the webhook configuration leaves out besides kube-system, kube-node-lease and the operator's own; pods there do not count as missing a broker")
	f.StringVar(&c.catalogue, "catalogue", "", "`profiles` of the catalogue to keep in the cluster as ClusterCryptoProfiles: all, or names separated by commas ("+strings.Join(catalogue.Names(), ", ")+"); none if empty")
	f.StringVar(&c.catalogueLabels, "catalogue-namespaces", "", "label `selector` of the namespaces that get the profiles of the catalogue, such as environment=production; every namespace if empty")

	f.StringVar(&c.metricsAddress, "metrics-bind-address", ":8080", "`address` of the HTTP port with Prometheus metrics; 0 is off")
	f.StringVar(&c.healthAddress, "health-probe-bind-address", ":8081", "`address` of the HTTP port with /healthz and /readyz; 0 is off")

	f.BoolVar(&c.enableWebhooks, "enable-webhooks", true, "inject brokers into pods and validate profiles at admission")
	f.IntVar(&c.webhookPort, "webhook-port", 10250, "HTTPS `port` of the webhooks")
	f.StringVar(&c.webhookService, "webhook-service-name", "crypto-broker-operator-webhook", "`name` of the Service by which the API server calls the webhooks")
	f.StringVar(&c.caSecret, "ca-secret-name", "crypto-broker-operator-ca", "`name` of the Secret with the certificate authority of the webhooks; the operator creates it")
	f.StringVar(&c.mutatingConfiguration, "mutating-webhook-configuration", "crypto-broker-operator", "`name` of the MutatingWebhookConfiguration whose caBundle the operator writes")
	f.StringVar(&c.injectionTemplate, "injection-template", "crypto-broker-operator", "`name` of the InjectionTemplate that the operator writes, for policies in the API server that inject brokers or check injected ones")
	f.StringVar(&c.validatingConfiguration, "validating-webhook-configuration", "crypto-broker-operator", "`name` of the ValidatingWebhookConfiguration whose caBundle the operator writes")

	f.StringVar(&c.keyGatewayService, "key-gateway-service", "", "`name` of the Service of the key gateway in the operator's namespace; the operator makes its certificate and publishes the signing keys for it; no key gateway if empty")
	f.BoolVar(&c.brokerCertificates, "broker-certificates", false, "sign certificates of pods for the key gateway, which injected brokers then have; needs Kubernetes 1.37 or newer and --key-gateway-service")
	f.StringVar(&c.keyAccessRegoDir, "key-access-rego-dir", "", "`directory` of the socket of gateway rego-check, which checks KeyAccessPolicies in Rego; if empty, the operator refuses KeyAccessPolicies in Rego")

	f.StringVar(&c.brokerImage, "broker-image", "", "`image` of injected brokers; required with --enable-webhooks")
	f.StringSliceVar(&c.allowedBrokerImages, "allowed-broker-images", nil, "further `images` that pods may choose by annotation, separated by commas, each with its tag or digest; a pod has to name exactly the same text")
	f.StringVar(&c.brokerPullPolicy, "broker-image-pull-policy", string(corev1.PullIfNotPresent), "`policy` for pulling the broker's image: Always, IfNotPresent or Never")
	f.Int32Var(&c.brokerStatusPort, "broker-status-port", contract.DefaultStatusPort, "status `port` of brokers, with probes, metrics and the digest of their profiles, 1024 to 65535")
	f.StringVar(&c.brokerCPURequest, "broker-cpu-request", "10m", "CPU request of a broker, as a `quantity`; 0 leaves it out")
	f.StringVar(&c.brokerMemoryRequest, "broker-memory-request", "32Mi", "memory request of a broker, as a `quantity`; 0 leaves it out")
	f.StringVar(&c.brokerMemoryLimit, "broker-memory-limit", "128Mi", "memory limit of a broker, as a `quantity`; 0 leaves it out")
	f.BoolVar(&c.brokerRequireFIPS, "broker-require-fips", false, "inject brokers that refuse operations that FIPS 140-3 does not approve")
	f.StringVar(&c.brokerLogLevel, "broker-log-level", "info", "log `level` of brokers: debug, info, warn or error")
	c.brokerAuditFlags(f)
	c.traceFlags(f)
	f.Int64Var(&c.socketGroup, "socket-group", 60471, "`id` of the group that owns the sockets in pods, 1 to 65535")

	f.IntVar(&c.minimumStrength, "minimum-strength", 0, "least security strength in `bits` of a profile: 112, 128, 192 or 256, or 0 for any; weaker ones are refused and not served")

	c.audit.flags(f)
	c.traces.flags(f)
	c.signing.flags(f)
	c.serving.flags(f)

	f.StringVar(&c.logLevel, "log-level", "info", "log `level` of the operator: debug, info, warn or error")
	f.StringVar(&c.logFormat, "log-format", "json", "`format` of the operator's log: json or text")
	return f
}

// parse reads the command line and checks it. The error has a sentence for each
// problem.
func parse(args []string, lookup func(string) (string, bool)) (*config, error) {
	c := &config{}
	f := c.flags()
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q, expected flags only", f.Arg(0))
	}
	if c.namespace == "" {
		c.namespace, _ = lookup("POD_NAMESPACE")
	}
	return c, c.check()
}

func (c *config) check() error {
	var problems []error
	problem := func(flag, found, expected string) {
		problems = append(problems, fmt.Errorf("--%s is %q, expected %s", flag, found, expected))
	}
	oneOf := func(flag, found string, allowed ...string) {
		if !slices.Contains(allowed, found) {
			last := len(allowed) - 1
			problem(flag, found, strings.Join(allowed[:last], ", ")+" or "+allowed[last])
		}
	}
	address := func(flag, found string) {
		if found == "0" {
			return
		}
		_, port, err := net.SplitHostPort(found)
		if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
			problem(flag, found, `an address with a port such as ":8080", or 0 for none`)
		}
	}

	if len(validation.IsDNS1123Label(c.namespace)) > 0 {
		problem("namespace", c.namespace, "the name of the operator's namespace (or set POD_NAMESPACE)")
	}
	oneOf("propagation", c.propagation, propagationAnnotation, propagationKubelet)
	address("metrics-bind-address", c.metricsAddress)
	address("health-probe-bind-address", c.healthAddress)
	if c.keyGatewayService != "" && len(validation.IsDNS1035Label(c.keyGatewayService)) > 0 {
		problem("key-gateway-service", c.keyGatewayService, "the name of a Service, or nothing for no key gateway")
	}
	if c.brokerCertificates && c.keyGatewayService == "" {
		problem("broker-certificates", "true", "false without --key-gateway-service")
	}
	if c.keyAccessRegoDir != "" && !filepath.IsAbs(c.keyAccessRegoDir) {
		problem("key-access-rego-dir", c.keyAccessRegoDir, "an absolute path, or nothing for no policies in Rego")
	}
	c.audit.check(problem, oneOf)
	c.traces.check(problem)
	c.signing.check(problem)
	c.serving.check(c.enableWebhooks, problem)
	oneOf("log-level", c.logLevel, "debug", "info", "warn", "error")
	oneOf("log-format", c.logFormat, "json", "text")
	if c.brokerStatusPort < contract.MinStatusPort || c.brokerStatusPort > 65535 {
		problem("broker-status-port", strconv.Itoa(int(c.brokerStatusPort)), "a port from 1024 to 65535")
	}
	if !slices.Contains([]int{0, 112, 128, 192, 256}, c.minimumStrength) {
		problem("minimum-strength", strconv.Itoa(c.minimumStrength), "112, 128, 192 or 256 bits, or 0 for any")
	}
	if len(problems) == 0 {
		if err := c.level.UnmarshalText([]byte(c.logLevel)); err != nil {
			problem("log-level", c.logLevel, err.Error())
		}
	}
	c.checkCatalogue(problem)
	if c.enableWebhooks {
		if c.webhookPort < 1 || c.webhookPort > 65535 {
			problem("webhook-port", strconv.Itoa(c.webhookPort), "a port from 1 to 65535")
		}
		for flag, name := range map[string]string{
			"webhook-service-name":             c.webhookService,
			"ca-secret-name":                   c.caSecret,
			"validating-webhook-configuration": c.validatingConfiguration,
			"mutating-webhook-configuration":   c.mutatingConfiguration,
			"injection-template":               c.injectionTemplate,
		} {
			if len(validation.IsDNS1123Subdomain(name)) > 0 {
				problem(flag, name, "the name of an object")
			}
		}
		if c.brokerImage == "" {
			problem("broker-image", "", "the image of the brokers to inject")
		}
		for _, image := range c.allowedBrokerImages {
			if err := template.CheckAllowedImage(image); err != nil {
				problems = append(problems, fmt.Errorf("--allowed-broker-images has %w", err))
			}
		}
		oneOf("broker-image-pull-policy", c.brokerPullPolicy, string(corev1.PullAlways), string(corev1.PullIfNotPresent), string(corev1.PullNever))
		oneOf("broker-log-level", c.brokerLogLevel, "debug", "info", "warn", "error")
		c.checkTraces(problem)
		c.checkBrokerAudit(problem)
		if c.socketGroup < 1 || c.socketGroup > 65535 {
			problem("socket-group", strconv.FormatInt(c.socketGroup, 10), "a group id from 1 to 65535")
		}
		c.brokerResources = corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
		quantity := func(flag, found string, list corev1.ResourceList, name corev1.ResourceName) {
			q, err := resource.ParseQuantity(found)
			switch {
			case err != nil || q.Sign() < 0:
				problem(flag, found, `a quantity such as "10m" or "32Mi", or 0 for none`)
			case q.Sign() > 0:
				list[name] = q
			}
		}
		quantity("broker-cpu-request", c.brokerCPURequest, c.brokerResources.Requests, corev1.ResourceCPU)
		quantity("broker-memory-request", c.brokerMemoryRequest, c.brokerResources.Requests, corev1.ResourceMemory)
		quantity("broker-memory-limit", c.brokerMemoryLimit, c.brokerResources.Limits, corev1.ResourceMemory)
		request, limit := c.brokerResources.Requests.Memory(), c.brokerResources.Limits.Memory()
		if !limit.IsZero() && limit.Cmp(resource.MustParse(annotation.MinMemory)) < 0 {
			problem("broker-memory-limit", c.brokerMemoryLimit, "at least "+annotation.MinMemory+", or 0 for none: an idle broker takes half of that, and requests need the rest")
		}
		if !limit.IsZero() && request.Cmp(*limit) > 0 {
			problem("broker-memory-request", c.brokerMemoryRequest, fmt.Sprintf("at most --broker-memory-limit, which is %q", c.brokerMemoryLimit))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}
