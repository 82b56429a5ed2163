// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/limits"
)

// podOptions are what the annotations of one pod ask for. What is zero was not asked
// for.
type podOptions struct {
	// containers are those that get a socket, nil for all. Of these the pod does not
	// have those that are awaited: another injector may add them later.
	containers, awaited []string

	// socketDir is where containers find the directory with their socket.
	socketDir string

	// profiles are those that every container may use, nil for all; by is the
	// same for single containers.
	profiles []string
	by       map[string][]string

	requests, limits corev1.ResourceList

	logLevel   string
	image      string
	statusPort int32
	pullSecret string

	// keys are the names of Secrets.
	keys []string
}

// annotation is one by which a pod asks for something.
type annotation struct {
	name string
	// read takes the value over. Its error is what was expected instead.
	read func(o *podOptions, value string) error
}

// annotationsRead are all of them in the order of the documentation, without
// those for single containers, whose names are made with ContainerProfilesPrefix.
// Whether a value fits the pod and the template is for fit to say.
var annotationsRead = []annotation{
	{contract.InjectAnnotation, func(*podOptions, string) error { return nil }}, // see decide
	{contract.AllowedProfilesAnnotation, func(o *podOptions, value string) (err error) {
		o.profiles, err = profileNames(value)
		return err
	}},
	{contract.ContainersAnnotation, func(o *podOptions, value string) (err error) {
		o.containers, err = containerNames(value)
		return err
	}},
	{contract.SocketPathAnnotation, func(o *podOptions, value string) error {
		o.socketDir = value
		return checkSocketPath(value)
	}},
	{contract.CPURequestAnnotation, func(o *podOptions, value string) error {
		return cpu(o.requests, value)
	}},
	{contract.CPULimitAnnotation, func(o *podOptions, value string) error {
		return cpu(o.limits, value)
	}},
	{contract.MemoryRequestAnnotation, func(o *podOptions, value string) error {
		return memory(o.requests, value)
	}},
	{contract.MemoryLimitAnnotation, func(o *podOptions, value string) error {
		return memory(o.limits, value)
	}},
	{contract.LogLevelAnnotation, func(o *podOptions, value string) error {
		o.logLevel = value
		return oneOf(value, "debug", "info", "warn", "error")
	}},
	{contract.MetricsPortAnnotation, func(o *podOptions, value string) (err error) {
		o.statusPort, err = statusPort(value)
		return err
	}},
	{contract.KeysAnnotation, func(o *podOptions, value string) (err error) {
		o.keys, err = secretNames(value)
		return err
	}},
	{contract.ImageAnnotation, func(o *podOptions, value string) error {
		o.image = value
		return nil // see fit
	}},
	{contract.ImagePullSecretAnnotation, func(o *podOptions, value string) error {
		o.pullSecret = value
		return secretName(value)
	}},
}

// annotationsWritten are those of this project that a pod may have without
// asking for anything: what a copy of an injected pod brings.
var annotationsWritten = []string{
	contract.InjectedAnnotation,
	contract.ProfilesSnapshotAnnotation,
	contract.ProfilesSnapshotSignatureAnnotation,
	contract.ProfilesDigestAnnotation,
}

// readPodOptions reads the annotations of a pod that gets a broker. A problem is a
// sentence with the annotation, its value and what was expected.
func readPodOptions(pod *corev1.Pod, template Template) (o podOptions, found problems) {
	o = podOptions{
		socketDir: contract.SocketDir,
		by:        map[string][]string{},
		requests:  corev1.ResourceList{},
		limits:    corev1.ResourceList{},
	}
	readers := map[string]annotation{}
	for _, known := range annotationsRead {
		readers[known.name] = known
	}
	for _, name := range slices.Sorted(maps.Keys(pod.Annotations)) {
		value := pod.Annotations[name]
		known, exists := readers[name]
		container, single := strings.CutPrefix(name, contract.ContainerProfilesPrefix)
		switch {
		case !strings.HasPrefix(name, contract.AnnotationPrefix) || slices.Contains(annotationsWritten, name):
		case single:
			profiles, err := profileNames(value)
			if err != nil {
				found.unexpected(name, value, "%v", err)
			}
			o.by[container] = profiles
		case !exists:
			found.addUnknown(name)
		default:
			if err := known.read(&o, value); err != nil {
				found.unexpected(name, value, "%v", err)
			}
		}
	}
	if found.none() {
		o.fit(pod, template, &found)
	}
	return o, found
}

// unexpected adds the sentence about the value of an annotation.
func (p *problems) unexpected(name, value, expected string, arguments ...any) {
	if p.full() {
		p.more++
		return
	}
	p.add("metadata.annotations[%s]: found %s, expected "+expected, append([]any{limits.Cut(name, limits.MaxQuoted), limits.Quoted(value)}, arguments...)...)
}

// fit says what of the options this pod cannot have, and finds the containers that
// are awaited.
func (o *podOptions) fit(pod *corev1.Pod, template Template, found *problems) {
	problem := func(name, expected string, arguments ...any) {
		found.unexpected(name, pod.Annotations[name], expected, arguments...)
	}
	has := map[string]bool{}
	each(pod, func(_ string, container *corev1.Container) {
		if !isBroker(*container) {
			has[container.Name] = true
		}
	})
	all := limits.Names(slices.Sorted(maps.Keys(has)))
	for _, name := range o.containers {
		switch {
		case has[name]:
		case name == contract.BrokerContainer || len(validation.IsDNS1123Label(name)) > 0:
			problem(contract.ContainersAnnotation, "names of containers of the pod, which are %s; it has no %s", all, limits.Quoted(name))
		default:
			o.awaited = append(o.awaited, name)
		}
	}
	listed := setOf(o.profiles)
	for _, name := range slices.Sorted(maps.Keys(o.by)) {
		key := contract.ContainerProfilesPrefix + name
		switch {
		case !has[name] && !slices.Contains(o.awaited, name):
			problem(key, "no such annotation: the pod has no container %s, its containers are %s; one that another injector adds later is named in %s, too",
				limits.Quoted(name), all, contract.ContainersAnnotation)
			continue
		case !o.wants(name):
			problem(key, "no such annotation: %s does not list the container %s, which so gets no socket", contract.ContainersAnnotation, limits.Quoted(name))
		case sharesProcesses(pod) != "":
			problem(key, "no such annotation: %s lets the pod's containers act for each other, so that they can't be told apart; %s holds for all of them",
				sharesProcesses(pod), contract.AllowedProfilesAnnotation)
		}
		for _, profile := range o.by[name] {
			if o.profiles != nil && !listed[profile] {
				problem(key, "some of the profiles in %s, which are %s; %s is not among them", contract.AllowedProfilesAnnotation, limits.Names(o.profiles), limits.Quoted(profile))
			}
		}
	}
	if _, asked := pod.Annotations[contract.ImageAnnotation]; asked && o.image != template.Image && !slices.Contains(template.AllowedImages, o.image) {
		problem(contract.ImageAnnotation, "one of the images that the operator allows, letter by letter: %s", limits.Names(append([]string{template.Image}, template.AllowedImages...)))
	}
	if o.statusPort != 0 {
		if pod.Spec.HostNetwork {
			problem(contract.MetricsPortAnnotation, "no such annotation: the pod uses the host's network, where its broker opens no port")
		} else if declares := declares(pod, o.statusPort); declares != "" {
			problem(contract.MetricsPortAnnotation, "a port that no other container declares, as %s does", declares)
		}
	}
	o.fitResources(pod, template, found)
}

// setOf makes a set of names, to look them up in.
func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, name := range list {
		set[name] = true
	}
	return set
}

// resourceAnnotations are in the order in which answers list their problems.
var resourceAnnotations = []struct {
	resource       corev1.ResourceName
	request, limit string
}{
	{corev1.ResourceCPU, contract.CPURequestAnnotation, contract.CPULimitAnnotation},
	{corev1.ResourceMemory, contract.MemoryRequestAnnotation, contract.MemoryLimitAnnotation},
}

// fitResources compares requests with limits: of the pod's where it says so, of
// the template's else.
func (o *podOptions) fitResources(pod *corev1.Pod, template Template, found *problems) {
	resources := o.over(template).Resources
	for _, r := range resourceAnnotations {
		_, requested := o.requests[r.resource]
		_, limited := o.limits[r.resource]
		if pod.Spec.Resources != nil {
			for _, annotation := range []struct {
				name  string
				asked bool
			}{{r.limit, limited}, {r.request, requested}} {
				if annotation.asked {
					found.unexpected(annotation.name, pod.Annotations[annotation.name],
						"no such annotation: the pod has resources as a whole (spec.resources), of which its broker takes a part")
				}
			}
			continue
		}
		request, limit := resources.Requests[r.resource], resources.Limits[r.resource]
		switch {
		case limit.IsZero() || request.Cmp(limit) <= 0:
		case requested:
			found.unexpected(r.request, pod.Annotations[r.request],
				"at most the limit of the broker, %s, or a higher %s beside it", &limit, r.limit)
		case limited:
			found.unexpected(r.limit, pod.Annotations[r.limit],
				"at least what the broker requests, %s, or a lower %s beside it", &request, r.request)
		}
	}
}

// wants reports whether a container gets a socket when the broker is added.
func (o *podOptions) wants(container string) bool {
	return o.containers == nil || slices.Contains(o.containers, container)
}

// over puts the options in the place of what the template has for all pods.
func (o *podOptions) over(template Template) Template {
	if o.image != "" {
		template.Image = o.image
	}
	if o.logLevel != "" {
		template.LogLevel = o.logLevel
	}
	if o.statusPort != 0 {
		template.StatusPort = o.statusPort
	}
	template.Resources = *template.Resources.DeepCopy()
	put := func(into *corev1.ResourceList, asked corev1.ResourceList) {
		if *into == nil && len(asked) > 0 {
			*into = corev1.ResourceList{}
		}
		maps.Copy(*into, asked)
	}
	put(&template.Resources.Requests, o.requests)
	put(&template.Resources.Limits, o.limits)
	return template
}
