// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/annotation"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/textlimits"
)

// podOptions are the requests of the annotations of one pod. A zero field was not requested.
type podOptions struct {
	// containers get a socket. It is nil for all containers. The pod does not have the awaited
	// ones yet, because another webhook may add them later.
	containers, awaited []string

	// socketDir is the directory of the socket in containers.
	socketDir string

	// profiles are the profiles that every container may use. It is nil for all profiles. by has
	// the profiles of single containers.
	profiles []string
	by       map[string][]string

	requests, limits corev1.ResourceList

	// arguments are the values of flags of the broker, by the name of the flag.
	arguments map[string]string

	image      string
	statusPort int32
	pullSecret string

	// keys are the names of the Secrets with keys, and sessionRedis is the name of the Secret for
	// Redis.
	keys         []string
	sessionRedis string
}

// podAnnotation is an annotation by which a pod asks for something. Its row is the
// source of what the webhook reads and refuses, of the expressions in the policies of
// the chart ([ChartTemplate]) and of the table in docs/pods.md ([DocumentationTable]).
type podAnnotation struct {
	// name is the name of the annotation. The name of a container completes a
	// name that ends with a dot.
	name string

	// example, effect and without are cells of the documentation: a value, what
	// the annotation does, and what holds without it.
	example, effect, without string

	// values are the values that the annotation may have.
	values annotation.Values

	// read stores one of values. container is the end of a name that ends with a dot. read is nil
	// if argument is enough.
	read func(o *podOptions, container, value string)

	// argument is the flag of the broker that gets the value, or empty. fromTemplate returns the
	// value for a pod without the annotation, and celFromTemplate is the same in CEL. An empty
	// value is not passed to the broker.
	argument        string
	fromTemplate    func(t template.Template) string
	celFromTemplate string

	// variables are the variables that the policies compute from the annotation, for mutations
	// and for refusals. They may use asked<Name>, the list of all annotations of the pod for this
	// row, and usable<Name>, the list of those with one of values.
	variables []celVariable

	// refusals are the reasons why a pod cannot have the annotation although its value is one of
	// values. [podOptions.fit] finds the same in Go.
	refusals []podRefusal
}

// annotationsRead are all annotations in the order of the documentation. A new row needs only its
// name in broker/contract, unless it does more than set an argument of the broker.
var annotationsRead = []podAnnotation{
	{
		name: contract.InjectAnnotation, example: "true",
		effect:  "asks for a broker, or declines one with `false`",
		without: "the namespace's label decides",
		values:  injectValues,
		read:    func(*podOptions, string, string) {}, // see Decide
	},
	{
		name: contract.AllowedProfilesAnnotation, example: "Default, Signing",
		effect:  "names of the profiles that the pod may use; calls with another one fail with `PERMISSION_DENIED`",
		without: "all",
		values:  annotation.ProfileNames,
		read:    func(o *podOptions, _, value string) { o.profiles = annotation.Items(value) },
		variables: []celVariable{
			{"podProfiles", "size(variables.usableProfiles) == 0 ? [] : " + celItems(contract.AllowedProfilesAnnotation)},
		},
	},
	{
		name: contract.ContainerProfilesPrefix, example: "Default",
		effect:   "the same for one container; where both annotations are there, the container may use the profiles that are in both",
		without:  "the profiles of the pod",
		values:   annotation.ProfileNames,
		read:     func(o *podOptions, container, value string) { o.by[container] = annotation.Items(value) },
		refusals: []podRefusal{containerWithoutSocket, containersAlike, beyondPodProfiles},
	},
	{
		name: contract.ContainersAnnotation, example: "app",
		effect:  "names of the containers that get a socket, init containers and containers that [another injector adds](#beside-other-injectors) included",
		without: "all that the pod has when it is created",
		values:  annotation.ContainerNames,
		read:    func(o *podOptions, _, value string) { o.containers = annotation.Items(value) },
		variables: []celVariable{
			{"listed", "size(variables.askedContainers) == 0 ? variables.names : " + celItems(contract.ContainersAnnotation)},
		},
		refusals: []podRefusal{noSuchContainer},
	},
	{
		name: contract.SocketPathAnnotation, example: "/run/crypto",
		effect:  "the directory in which containers find `" + contract.SocketFile + "`",
		without: "`" + contract.SocketDir + "`",
		values:  annotation.SocketDirs,
		read:    func(o *podOptions, _, value string) { o.socketDir = value },
		variables: []celVariable{
			{"socketDirectory", "size(variables.usableSocketPath) == 0 ? " + annotation.CELString(contract.SocketDir) + " : " + celValue(contract.SocketPathAnnotation)},
		},
	},
	{
		name: contract.CPURequestAnnotation, example: "50m",
		effect:   "the broker's CPU request",
		without:  "the chart's `broker.resources`",
		values:   annotation.CPUAmounts,
		read:     func(o *podOptions, _, value string) { o.requests[corev1.ResourceCPU] = resource.MustParse(value) },
		refusals: []podRefusal{podHasResources, requestAboveLimit(corev1.ResourceCPU, contract.CPULimitAnnotation)},
	},
	{
		name: contract.CPULimitAnnotation, example: "1",
		effect:   "the broker's CPU limit",
		without:  "the chart's `broker.resources`: none",
		values:   annotation.CPUAmounts,
		read:     func(o *podOptions, _, value string) { o.limits[corev1.ResourceCPU] = resource.MustParse(value) },
		refusals: []podRefusal{podHasResources, limitBelowRequest(corev1.ResourceCPU, contract.CPURequestAnnotation)},
	},
	{
		name: contract.MemoryRequestAnnotation, example: "64Mi",
		effect:   "the broker's memory request, " + annotation.MinMemory + " at least; an idle broker takes half of that",
		without:  "the chart's `broker.resources`",
		values:   annotation.MemoryAmounts,
		read:     func(o *podOptions, _, value string) { o.requests[corev1.ResourceMemory] = resource.MustParse(value) },
		refusals: []podRefusal{podHasResources, requestAboveLimit(corev1.ResourceMemory, contract.MemoryLimitAnnotation)},
	},
	{
		name: contract.MemoryLimitAnnotation, example: "256Mi",
		effect:    "the broker's memory limit, " + annotation.MinMemory + " at least; a quarter of it is for calls in flight",
		without:   "the chart's `broker.resources`",
		values:    annotation.MemoryAmounts,
		read:      func(o *podOptions, _, value string) { o.limits[corev1.ResourceMemory] = resource.MustParse(value) },
		variables: celAmountVariables,
		refusals:  []podRefusal{podHasResources, limitBelowRequest(corev1.ResourceMemory, contract.MemoryRequestAnnotation)},
	},
	{
		name: contract.LogLevelAnnotation, example: "debug",
		effect:          "the least severe lines that the broker [logs](logs.md): `debug`, `info`, `warn` or `error`; a change counts while the pod runs",
		without:         "the chart's `broker.logLevel`",
		values:          annotation.OneOf("debug", "info", "warn", "error"),
		argument:        contract.LogLevelFlag,
		fromTemplate:    func(t template.Template) string { return t.LogLevel },
		celFromTemplate: "string(params.spec.?logLevel.orValue(''))",
	},
	{
		name: contract.TracesSamplerAnnotation, example: "traceidratio",
		effect: "which calls have a [span](traces.md#of-brokers-in-pods), if the platform exports spans: `always_on`, `always_off` or `traceidratio`, " +
			"or each with `parentbased_` before it: then the caller's decision comes first",
		without:  "the chart's `broker.traces.sampler`",
		values:   annotation.OneOf(template.Samplers...),
		argument: contract.TracesSamplerFlag,
	},
	{
		name: contract.TracesRatioAnnotation, example: "0.01",
		effect:   "the part of the traces that `traceidratio` or `parentbased_traceidratio` takes, 0 to 1",
		without:  "the chart's `broker.traces.samplerArgument`",
		values:   annotation.Ratio,
		argument: contract.TracesRatioFlag,
		refusals: []podRefusal{noSamplerByRatio},
	},
	{
		name: contract.MetricsPortAnnotation, example: "9471",
		effect:  "the port of the broker's metrics and health, 1024 to 65535",
		without: "the chart's `broker.statusPort`",
		values:  annotation.StatusPorts,
		read: func(o *podOptions, _, value string) {
			port, _ := strconv.ParseUint(value, 10, 16) // without error for each of annotation.StatusPorts
			o.statusPort = int32(port)
		},
		variables: celPortVariables,
		refusals:  []podRefusal{portOnHost, portDeclared},
	},
	{
		name: contract.SessionGatewayAnnotation, example: "8443:8080",
		effect:    "the broker serves [encrypted sessions](session-gateway.md) by HTTP on the first port, 1024 to 65535, for the application on the second port of `127.0.0.1`",
		without:   "no session gateway",
		values:    annotation.SessionPorts,
		argument:  contract.SessionGatewayFlag,
		variables: celSessionVariables,
		refusals:  []podRefusal{portOnHost, sessionPortDeclared, sessionPortTaken, sessionProfileUnlisted},
	},
	{
		name: contract.SessionProfileAnnotation, example: "Shop",
		effect:   "the profile of the sessions of the session gateway",
		without:  "`" + contract.DefaultSessionProfile + "`",
		values:   annotation.ProfileName,
		argument: contract.SessionGatewayProfileFlag,
		refusals: []podRefusal{noSessionGateway},
	},
	{
		name: contract.SessionPlainPathsAnnotation, example: "/healthz,/readyz",
		effect:   "paths of GET and HEAD requests that the session gateway forwards without encryption",
		without:  "none",
		values:   annotation.PlainPaths,
		argument: contract.SessionGatewayPlainFlag,
		refusals: []podRefusal{noSessionGateway},
	},
	{
		name: contract.SessionRedisAnnotation, example: "session-redis",
		effect: "a Secret of the namespace with the settings for [sessions in Redis](session-redis.md#in-a-pod), mounted only in the broker; " +
			"the pod does not start while it is missing",
		without: "sessions are in the memory of the broker",
		values:  annotation.SecretName,
		read:    func(o *podOptions, _, value string) { o.sessionRedis = value },
		variables: []celVariable{
			{"redisSecret", "size(variables.usableSessionRedis) == 0 ? '' : " + celValue(contract.SessionRedisAnnotation)},
		},
	},
	{
		name: contract.KeysAnnotation, example: "broker-keys, issuing-ca",
		effect:  "Secrets of the namespace with [keys](keys.md), mounted only in the broker; the pod does not start while one of them is missing",
		without: "none",
		values:  annotation.SecretNames,
		read:    func(o *podOptions, _, value string) { o.keys = annotation.Items(value) },
		variables: []celVariable{
			{"keys", "size(variables.usableKeys) == 0 ? [] : " + celItems(contract.KeysAnnotation)},
		},
	},
	{
		name: contract.ImageAnnotation, example: "registry.example/broker:1.2.3",
		effect:    "the broker's image; the chart's `broker.allowedImages` has to list exactly this text",
		without:   "the chart's `broker.image`",
		values:    annotation.Any, // see imageNotAllowed
		read:      func(o *podOptions, _, value string) { o.image = value },
		variables: celImageVariables,
		refusals:  []podRefusal{imageNotAllowed},
	},
	{
		name: contract.ImagePullSecretAnnotation, example: "registry",
		effect:  "a Secret of the namespace with which the node pulls the broker's image",
		without: "those that the pod has",
		values:  annotation.SecretName,
		read:    func(o *podOptions, _, value string) { o.pullSecret = value },
		variables: []celVariable{
			{"pullSecret", "size(variables.usableImagePullSecret) == 0 ? '' : " + celValue(contract.ImagePullSecretAnnotation)},
		},
	},
}

// annotationsWritten are annotations that the operator writes. They request nothing. A copy of an
// injected pod has them.
var annotationsWritten = []string{
	contract.InjectedAnnotation,
	contract.ProfilesSnapshotAnnotation,
	contract.ProfilesSnapshotSignatureAnnotation,
	contract.ProfilesDigestAnnotation,
}

// isPrefix reports whether the names of containers complete the name.
func (a podAnnotation) isPrefix() bool { return strings.HasSuffix(a.name, ".") }

// annotationOf returns the row of an annotation. If the row is for single containers, it also
// returns the container at the end of the name. The row is nil for an unknown annotation.
func annotationOf(name string) (row *podAnnotation, container string) {
	for i := range annotationsRead {
		row := &annotationsRead[i]
		if rest, found := strings.CutPrefix(name, row.name); found && (rest == "" || row.isPrefix()) {
			return row, rest
		}
	}
	return nil, ""
}

// readPodOptions reads the annotations of a pod that gets a broker. A problem is a
// sentence with the annotation, its value and what was expected.
func readPodOptions(pod *corev1.Pod, common template.Template) (o podOptions, found problems) {
	o = podOptions{
		socketDir: contract.SocketDir,
		by:        map[string][]string{},
		requests:  corev1.ResourceList{},
		limits:    corev1.ResourceList{},
		arguments: map[string]string{},
	}
	for _, name := range slices.Sorted(maps.Keys(pod.Annotations)) {
		if !strings.HasPrefix(name, contract.AnnotationPrefix) || slices.Contains(annotationsWritten, name) {
			continue
		}
		value := pod.Annotations[name]
		switch row, container := annotationOf(name); {
		case row == nil:
			found.addUnknown(name)
		case !row.values.Fits(value):
			found.unexpected(name, value, "%s", row.values.Expected)
		case row.argument != "":
			o.arguments[row.argument] = value
		default:
			row.read(&o, container, value)
		}
	}
	if found.none() {
		o.fit(pod, common, &found)
	}
	return o, found
}

// unexpected adds the sentence about the value of an annotation.
func (p *problems) unexpected(name, value, expected string, arguments ...any) {
	if p.full() {
		p.more++
		return
	}
	p.list(ReasonAnnotation, "", "metadata.annotations[%s]: found %s, expected "+expected,
		append([]any{textlimits.Cut(name, textlimits.MaxQuoted), textlimits.Quoted(value)}, arguments...))
}

// optionArguments are the arguments of the broker that annotations may change.
func (r rendering) optionArguments() (arguments []string) {
	for _, row := range annotationsRead {
		if row.argument == "" {
			continue
		}
		value := r.options.arguments[row.argument]
		if value == "" && row.fromTemplate != nil {
			value = row.fromTemplate(r.template)
		}
		if value != "" {
			arguments = append(arguments, contract.Argument(row.argument, value))
		}
	}
	return arguments
}

// wants reports whether a container gets a socket when the broker is added.
func (o *podOptions) wants(container string) bool {
	return o.containers == nil || slices.Contains(o.containers, container)
}

// over returns the template with the values that the options of the pod replace.
func (o *podOptions) over(common template.Template) template.Template {
	if o.image != "" {
		common.Image = o.image
	}
	if o.statusPort != 0 {
		common.StatusPort = o.statusPort
	}
	common.Resources = *common.Resources.DeepCopy()
	put := func(into *corev1.ResourceList, asked corev1.ResourceList) {
		if *into == nil && len(asked) > 0 {
			*into = corev1.ResourceList{}
		}
		maps.Copy(*into, asked)
	}
	put(&common.Resources.Requests, o.requests)
	put(&common.Resources.Limits, o.limits)
	return common
}
