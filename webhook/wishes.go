// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// wishes are what the annotations of one pod ask for. What is zero was not asked
// for.
type wishes struct {
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
	read func(w *wishes, value string) error
}

// annotationsRead are all of them in the order of the documentation, without
// those for single containers, whose names are made with ContainerProfilesPrefix.
// Whether a value fits the pod and the template is for fit to say.
var annotationsRead = []annotation{
	{contract.InjectAnnotation, func(*wishes, string) error { return nil }}, // see decide
	{contract.AllowedProfilesAnnotation, func(w *wishes, value string) (err error) {
		w.profiles, err = profileNames(value)
		return err
	}},
	{contract.ContainersAnnotation, func(w *wishes, value string) (err error) {
		w.containers, err = containerNames(value)
		return err
	}},
	{contract.SocketPathAnnotation, func(w *wishes, value string) error {
		w.socketDir = value
		return checkSocketPath(value)
	}},
	{contract.CPURequestAnnotation, func(w *wishes, value string) error {
		return cpu(w.requests, value)
	}},
	{contract.CPULimitAnnotation, func(w *wishes, value string) error {
		return cpu(w.limits, value)
	}},
	{contract.MemoryRequestAnnotation, func(w *wishes, value string) error {
		return memory(w.requests, value)
	}},
	{contract.MemoryLimitAnnotation, func(w *wishes, value string) error {
		return memory(w.limits, value)
	}},
	{contract.LogLevelAnnotation, func(w *wishes, value string) error {
		w.logLevel = value
		return oneOf(value, "debug", "info", "warn", "error")
	}},
	{contract.MetricsPortAnnotation, func(w *wishes, value string) (err error) {
		w.statusPort, err = statusPort(value)
		return err
	}},
	{contract.KeysAnnotation, func(w *wishes, value string) (err error) {
		w.keys, err = secretNames(value)
		return err
	}},
	{contract.ImageAnnotation, func(w *wishes, value string) error {
		w.image = value
		return nil // see fit
	}},
	{contract.ImagePullSecretAnnotation, func(w *wishes, value string) error {
		w.pullSecret = value
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

// wishesOf reads the annotations of a pod that gets a broker. A problem is a
// sentence with the annotation, its value and what was expected.
func wishesOf(pod *corev1.Pod, template Template) (w wishes, found problems) {
	w = wishes{
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
			w.by[container] = profiles
		case !exists:
			found.addUnknown(name)
		default:
			if err := known.read(&w, value); err != nil {
				found.unexpected(name, value, "%v", err)
			}
		}
	}
	if found.none() {
		w.fit(pod, template, &found)
	}
	return w, found
}

// unexpected adds the sentence about the value of an annotation.
func (p *problems) unexpected(name, value, expected string, arguments ...any) {
	if p.full() {
		p.more++
		return
	}
	p.add("metadata.annotations[%s]: found %s, expected "+expected, append([]any{cut(name, maxQuoted), quoted(value)}, arguments...)...)
}

// fit says what of the wishes this pod cannot have, and finds the containers that
// are awaited.
func (w *wishes) fit(pod *corev1.Pod, template Template, found *problems) {
	problem := func(name, expected string, arguments ...any) {
		found.unexpected(name, pod.Annotations[name], expected, arguments...)
	}
	has := map[string]bool{}
	each(pod, func(_ string, container *corev1.Container) {
		if !isBroker(*container) {
			has[container.Name] = true
		}
	})
	all := names(slices.Sorted(maps.Keys(has)))
	for _, name := range w.containers {
		switch {
		case has[name]:
		case name == contract.BrokerContainer || len(validation.IsDNS1123Label(name)) > 0:
			problem(contract.ContainersAnnotation, "names of containers of the pod, which are %s; it has no %s", all, quoted(name))
		default:
			w.awaited = append(w.awaited, name)
		}
	}
	listed := setOf(w.profiles)
	for _, name := range slices.Sorted(maps.Keys(w.by)) {
		key := contract.ContainerProfilesPrefix + name
		switch {
		case !has[name] && !slices.Contains(w.awaited, name):
			problem(key, "no such annotation: the pod has no container %s, its containers are %s; one that another injector adds later is named in %s, too",
				quoted(name), all, contract.ContainersAnnotation)
			continue
		case !w.wants(name):
			problem(key, "no such annotation: %s does not list the container %s, which so gets no socket", contract.ContainersAnnotation, quoted(name))
		case sharesProcesses(pod) != "":
			problem(key, "no such annotation: %s lets the pod's containers act for each other, so that they can't be told apart; %s holds for all of them",
				sharesProcesses(pod), contract.AllowedProfilesAnnotation)
		}
		for _, profile := range w.by[name] {
			if w.profiles != nil && !listed[profile] {
				problem(key, "some of the profiles in %s, which are %s; %s is not among them", contract.AllowedProfilesAnnotation, names(w.profiles), quoted(profile))
			}
		}
	}
	if _, asked := pod.Annotations[contract.ImageAnnotation]; asked && w.image != template.Image && !slices.Contains(template.AllowedImages, w.image) {
		problem(contract.ImageAnnotation, "one of the images that the operator allows, letter by letter: %s", names(append([]string{template.Image}, template.AllowedImages...)))
	}
	if w.statusPort != 0 {
		if pod.Spec.HostNetwork {
			problem(contract.MetricsPortAnnotation, "no such annotation: the pod uses the host's network, where its broker opens no port")
		} else if declares := declares(pod, w.statusPort); declares != "" {
			problem(contract.MetricsPortAnnotation, "a port that no other container declares, as %s does", declares)
		}
	}
	w.fitResources(pod, template, found)
}

// setOf makes a set of names, to look them up in.
func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, name := range list {
		set[name] = true
	}
	return set
}

// resourceAnnotations are in the order in which problems are told.
var resourceAnnotations = []struct {
	resource       corev1.ResourceName
	request, limit string
}{
	{corev1.ResourceCPU, contract.CPURequestAnnotation, contract.CPULimitAnnotation},
	{corev1.ResourceMemory, contract.MemoryRequestAnnotation, contract.MemoryLimitAnnotation},
}

// fitResources compares requests with limits: of the pod's where it says so, of
// the template's else.
func (w *wishes) fitResources(pod *corev1.Pod, template Template, found *problems) {
	resources := w.over(template).Resources
	for _, r := range resourceAnnotations {
		_, requested := w.requests[r.resource]
		_, limited := w.limits[r.resource]
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

// wants says whether a container gets a socket when the broker is added.
func (w *wishes) wants(container string) bool {
	return w.containers == nil || slices.Contains(w.containers, container)
}

// over puts the wishes in the place of what the template has for all pods.
func (w *wishes) over(template Template) Template {
	if w.image != "" {
		template.Image = w.image
	}
	if w.logLevel != "" {
		template.LogLevel = w.logLevel
	}
	if w.statusPort != 0 {
		template.StatusPort = w.statusPort
	}
	template.Resources = *template.Resources.DeepCopy()
	put := func(into *corev1.ResourceList, wished corev1.ResourceList) {
		if *into == nil && len(wished) > 0 {
			*into = corev1.ResourceList{}
		}
		maps.Copy(*into, wished)
	}
	put(&template.Resources.Requests, w.requests)
	put(&template.Resources.Limits, w.limits)
	return template
}
