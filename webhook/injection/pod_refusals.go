// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/annotation"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/textlimits"
)

// podRefusal is a reason why a pod cannot have an annotation: the sentence of the webhook and of
// the policies, and the condition of the policies.
type podRefusal struct {
	// expected is the end of the sentence. The policies replace its verbs %s by arguments, which
	// are CEL expressions for strings.
	expected  string
	arguments []string

	// applies is the condition in CEL. The variable annotation is the name of the
	// annotation.
	applies string
}

// celContainer is the container in the name of an annotation for a single container.
var celContainer = fmt.Sprintf("annotation.substring(%d)", len(contract.ContainerProfilesPrefix))

var (
	noSuchContainer = podRefusal{
		expected:  "names of containers of the pod, which are %s; it has no %s",
		arguments: []string{"variables.names.join(', ')", "strings.quote(variables.listed.filter(n, !(n in variables.names))[0])"},
		applies:   "!variables.listed.all(n, n in variables.names)",
	}

	containerWithoutSocket = podRefusal{
		expected: "no such annotation: of the pod's containers these get a socket: %s; " +
			"a container that another injector adds later is named in " + contract.ContainersAnnotation + ", too",
		arguments: []string{"variables.callers.join(', ')"},
		// A broker without callers is not the operator's, and another sentence refuses it.
		applies: fmt.Sprintf("size(variables.callers) > 0 && !(%[1]s in variables.names && %[1]s in variables.callers)", celContainer),
	}

	containersAlike = podRefusal{
		expected: "no such annotation: %s lets the pod's containers act for each other, so that the broker can't tell them apart; " +
			contract.AllowedProfilesAnnotation + " holds for all of them",
		arguments: []string{"(object.spec.?hostPID.orValue(false) ? 'spec.hostPID' : 'spec.shareProcessNamespace')"},
		applies:   "variables.sharesProcesses",
	}

	beyondPodProfiles = podRefusal{
		expected: "some of the profiles in " + contract.AllowedProfilesAnnotation + "; %s is not among them",
		arguments: []string{fmt.Sprintf("strings.quote(variables.annotations[annotation].split(',', %d).map(p, p.trim())\n.filter(p, !(p in variables.podProfiles))[0])",
			annotation.MaxItems+1)},
		applies: fmt.Sprintf("size(variables.usableProfiles) > 0 &&\n!variables.annotations[annotation].split(',', %d).all(p, p.trim() in variables.podProfiles)", annotation.MaxItems+1),
	}

	imageNotAllowed = podRefusal{
		expected:  "one of the images that the operator allows, letter by letter: %s",
		arguments: []string{"variables.images.join(', ')"},
		applies:   "!(variables.annotations[annotation] in variables.images)",
	}

	portOnHost = podRefusal{
		expected: "no such annotation: the pod uses the host's network, where its broker opens no port",
		applies:  "variables.hostNetwork",
	}

	portDeclared = podRefusal{
		expected:  "a port that no other container declares, as container %s does",
		arguments: []string{"strings.quote(variables.declarers[0])"},
		applies:   "!variables.hostNetwork && size(variables.declarers) > 0",
	}

	sessionPortDeclared = podRefusal{
		expected:  "a first port that no other container declares, as container %s does",
		arguments: []string{"strings.quote(variables.sessionDeclarers[0])"},
		applies:   "!variables.hostNetwork && size(variables.sessionDeclarers) > 0",
	}

	sessionPortTaken = podRefusal{
		expected:  "ports other than %s, the status port of the broker",
		arguments: []string{"string(variables.statusPort)"},
		applies:   "variables.opensPort && variables.statusPort in variables.sessionPorts",
	}

	sessionProfileUnlisted = podRefusal{
		expected:  "%s among the profiles in " + contract.AllowedProfilesAnnotation + ", or one of them in " + contract.SessionProfileAnnotation,
		arguments: []string{"strings.quote(variables.sessionProfile)"},
		applies:   "size(variables.usableProfiles) > 0 && !(variables.sessionProfile in variables.podProfiles)",
	}

	noSessionGateway = podRefusal{
		expected: "no such annotation: the pod has no session gateway, which " + contract.SessionGatewayAnnotation + " asks for",
		applies:  "size(variables.askedSessionGateway) == 0",
	}

	noSamplerByRatio = podRefusal{
		expected: contract.TracesSamplerAnnotation + " beside it, with " + strings.Join(template.SamplersByRatio, " or "),
		applies: fmt.Sprintf("size(variables.askedTracesSampler) == 0 || !(%s in %s)",
			celValue(contract.TracesSamplerAnnotation), annotation.CELList(template.SamplersByRatio)),
	}

	podHasResources = podRefusal{
		expected: "no such annotation: the pod has resources as a whole (spec.resources), of which its broker takes a part",
		applies:  "variables.podResources",
	}
)

// Sentences about an amount, with the other amount and its annotation.
const (
	atMostTheLimit    = "at most the limit of the broker, %s, or additionally a higher %s"
	atLeastTheRequest = "at least the request of the broker, %s, or additionally a lower %s"
)

func requestAboveLimit(name corev1.ResourceName, limit string) podRefusal {
	return podRefusal{
		expected:  atMostTheLimit,
		arguments: []string{celInForce(limit, "limits", name), annotation.CELString(limit)},
		applies:   annotation.CELString(string(name)) + " in variables.exceeded",
	}
}

// limitBelowRequest is for a pod without an annotation for the request. Otherwise the sentence is
// about the request.
func limitBelowRequest(name corev1.ResourceName, request string) podRefusal {
	return podRefusal{
		expected:  atLeastTheRequest,
		arguments: []string{celInForce(request, "requests", name), annotation.CELString(request)},
		applies:   annotation.CELString(string(name)) + " in variables.exceeded && !(" + annotation.CELString(request) + " in variables.annotations)",
	}
}

// celInForce returns the amount of an annotation, or else of the template.
func celInForce(asked, list string, name corev1.ResourceName) string {
	return fmt.Sprintf("variables.annotations[?%s].orValue(string(params.spec.container.?resources[?'%s'][?'%s'].orValue('0')))", annotation.CELString(asked), list, name)
}

// fit finds options that this pod cannot have, and the containers that are awaited.
func (o *podOptions) fit(pod *corev1.Pod, common template.Template, found *problems) {
	refuse := func(name string, reason podRefusal, arguments ...any) {
		found.unexpected(name, pod.Annotations[name], reason.expected, arguments...)
	}
	var containers []string
	each(pod, func(_ string, container *corev1.Container) {
		if !isBroker(*container) {
			containers = append(containers, container.Name)
		}
	})
	has := setOf(containers)
	for _, name := range o.containers {
		switch {
		case has[name]:
		case name == contract.BrokerContainer || len(validation.IsDNS1123Label(name)) > 0:
			refuse(contract.ContainersAnnotation, noSuchContainer, textlimits.Names(containers), textlimits.Quoted(name))
		default:
			o.awaited = append(o.awaited, name)
		}
	}
	callers := slices.Concat(slices.DeleteFunc(containers, func(name string) bool { return !o.wants(name) }), o.awaited)
	listed := setOf(o.profiles)
	for _, name := range slices.Sorted(maps.Keys(o.by)) {
		key := contract.ContainerProfilesPrefix + name
		if !slices.Contains(callers, name) {
			refuse(key, containerWithoutSocket, textlimits.Names(callers))
			continue
		}
		if sharesProcesses(pod) != "" {
			refuse(key, containersAlike, sharesProcesses(pod))
		}
		for _, profile := range o.by[name] {
			if o.profiles != nil && !listed[profile] {
				refuse(key, beyondPodProfiles, textlimits.Quoted(profile))
			}
		}
	}
	if _, asked := pod.Annotations[contract.ImageAnnotation]; asked && o.image != common.Image && !slices.Contains(common.AllowedImages, o.image) {
		refuse(contract.ImageAnnotation, imageNotAllowed, textlimits.Names(append([]string{common.Image}, common.AllowedImages...)))
	}
	if o.statusPort != 0 {
		if pod.Spec.HostNetwork {
			refuse(contract.MetricsPortAnnotation, portOnHost)
		} else if _, container := declares(pod, o.statusPort); container != "" {
			refuse(contract.MetricsPortAnnotation, portDeclared, textlimits.Quoted(container))
		}
	}
	if o.arguments[contract.TracesRatioFlag] != "" && !slices.Contains(template.SamplersByRatio, o.arguments[contract.TracesSamplerFlag]) {
		refuse(contract.TracesRatioAnnotation, noSamplerByRatio)
	}
	o.fitSessions(pod, common, found)
	o.fitResources(pod, common, found)
}

// fitSessions finds options of the session gateway that this pod cannot have.
func (o *podOptions) fitSessions(pod *corev1.Pod, common template.Template, found *problems) {
	refuse := func(name string, reason podRefusal, arguments ...any) {
		found.unexpected(name, pod.Annotations[name], reason.expected, arguments...)
	}
	listen, app, asked := o.sessionPorts()
	if !asked {
		for _, name := range []string{contract.SessionPlainPathsAnnotation, contract.SessionProfileAnnotation} {
			if _, found := pod.Annotations[name]; found {
				refuse(name, noSessionGateway)
			}
		}
		return
	}
	if pod.Spec.HostNetwork {
		refuse(contract.SessionGatewayAnnotation, portOnHost)
	} else {
		status := o.over(common).StatusPort
		if _, container := declares(pod, listen); container != "" {
			refuse(contract.SessionGatewayAnnotation, sessionPortDeclared, textlimits.Quoted(container))
		}
		if _, container := declares(pod, status); container == "" && (status == listen || status == app) {
			refuse(contract.SessionGatewayAnnotation, sessionPortTaken, strconv.Itoa(int(status)))
		}
	}
	if _, name := o.sessionProfile(); o.profiles != nil && !slices.Contains(o.profiles, name) {
		refuse(contract.SessionGatewayAnnotation, sessionProfileUnlisted, textlimits.Quoted(name))
	}
}

// sessionProfile returns the profile of the session gateway, and the annotation that asks for it. They
// are empty if there is no session gateway.
func (o *podOptions) sessionProfile() (annotation, name string) {
	if _, _, asked := o.sessionPorts(); !asked {
		return "", ""
	}
	if name := o.arguments[contract.SessionGatewayProfileFlag]; name != "" {
		return contract.SessionProfileAnnotation, name
	}
	return contract.SessionGatewayAnnotation, contract.DefaultSessionProfile
}

// sessionPorts returns the ports of the session gateway and of the application, and reports whether
// there is a session gateway.
func (o *podOptions) sessionPorts() (listen, app int32, asked bool) {
	return annotation.PortsOf(o.arguments[contract.SessionGatewayFlag])
}

// setOf returns a set of names.
func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, name := range list {
		set[name] = true
	}
	return set
}

// resourceAnnotations has the order in which answers list their problems.
var resourceAnnotations = []struct {
	resource       corev1.ResourceName
	request, limit string
}{
	{corev1.ResourceCPU, contract.CPURequestAnnotation, contract.CPULimitAnnotation},
	{corev1.ResourceMemory, contract.MemoryRequestAnnotation, contract.MemoryLimitAnnotation},
}

// fitResources compares requests with limits. Each comes from the pod, or else from the
// template. In a Guaranteed pod, a single amount counts for both (see guarantee).
func (o *podOptions) fitResources(pod *corev1.Pod, common template.Template, found *problems) {
	resources := o.over(common).Resources
	for _, r := range resourceAnnotations {
		_, requested := o.requests[r.resource]
		_, limited := o.limits[r.resource]
		if hasResources(pod) {
			for _, annotation := range []struct {
				name  string
				asked bool
			}{{r.limit, limited}, {r.request, requested}} {
				if annotation.asked {
					found.unexpected(annotation.name, pod.Annotations[annotation.name], "%s", podHasResources.expected)
				}
			}
			continue
		}
		request, limit := resources.Requests[r.resource], resources.Limits[r.resource]
		switch {
		case requested != limited && isGuaranteed(pod):
		case limit.IsZero() || request.Cmp(limit) <= 0:
		case requested:
			found.unexpected(r.request, pod.Annotations[r.request], atMostTheLimit, &limit, r.limit)
		case limited:
			found.unexpected(r.limit, pod.Annotations[r.limit], atLeastTheRequest, &request, r.request)
		}
	}
}
