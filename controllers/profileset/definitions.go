// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/event"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// Names of the resource definitions of profiles. Each is deleted with all of its
// profiles.
const (
	namespacedDefinition = "cryptoprofiles.cryptobroker.io"
	clusterDefinition    = "clustercryptoprofiles.cryptobroker.io"
)

// namedInText is the number of profiles that a sentence names.
const namedInText = 5

// definitions distinguishes profiles that were deleted from profiles that disappeared with their
// resource definition. The latter stay in the sets of their namespaces, because a user who
// deletes a definition seldom intends to stop the applications of a whole cluster.
type definitions struct {
	namespaces *state.Store
	// live reads from the API server, because a cache may have the definition from before the
	// profile disappeared.
	live     client.Reader
	recorder events.EventRecorder
}

// oldest has the creation time of the oldest profile that applies to a namespace, by resource
// definition.
type oldest map[string]metav1.Time

func oldestOf(from sources) oldest {
	all := oldest{}
	add := func(definition string, object client.Object) {
		created, known := all[definition]
		if own := object.GetCreationTimestamp(); object.GetDeletionTimestamp().IsZero() && (!known || own.Before(&created)) {
			all[definition] = own
		}
	}
	for i := range from.namespaced {
		add(namespacedDefinition, &from.namespaced[i])
	}
	for i := range from.cluster {
		if render.Selects(&from.cluster[i].Spec, from.namespace.Labels) {
			add(clusterDefinition, &from.cluster[i])
		}
	}
	return all
}

// annotation returns the value of OldestProfilesAnnotation, or an empty text.
func (o oldest) annotation() string {
	if len(o) == 0 {
		return ""
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic("profileset: " + err.Error()) // names and times
	}
	return string(text)
}

// readOldest reads the annotation of a ConfigMap. One that can't be read counts as
// missing.
func readOldest(ctx context.Context, found *corev1.ConfigMap) oldest {
	text := found.Annotations[v1alpha1.OldestProfilesAnnotation]
	if text == "" {
		return nil
	}
	var all oldest
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		log.FromContext(ctx).Error(err, "the age of the oldest profiles can't be read from the ConfigMap", "annotation", v1alpha1.OldestProfilesAnnotation)
	}
	return all
}

// reasonToHold returns a sentence about why missing profiles stay in the set of the ConfigMap, or
// "" if they were deleted. It returns an error if it cannot decide between both.
func (d *definitions) reasonToHold(ctx context.Context, found *corev1.ConfigMap, missing []string) (string, error) {
	oldest := readOldest(ctx, found)
	for _, name := range []string{namespacedDefinition, clusterDefinition} {
		definition := &metav1.PartialObjectMetadata{}
		definition.SetGroupVersionKind(definitionKind)
		err := d.live.Get(ctx, types.NamespacedName{Name: name}, definition)
		created, known := oldest[name]
		var state string
		switch {
		case apierrors.IsNotFound(err):
			state = "there is no resource definition " + name
		case err != nil:
			return "", fmt.Errorf("profiles are missing, and whether they were deleted or went with the resource definition %s can't be found out: %w", name, err)
		case !definition.DeletionTimestamp.IsZero():
			state = "the resource definition " + name + " is being deleted"
		case known && created.Before(&definition.CreationTimestamp):
			state = "the resource definition " + name + " was deleted and made again"
		default:
			continue
		}
		return fmt.Sprintf("The set of the namespace stays as it was, with the missing %s: %s, and profiles that went with their definition are not taken out of service. Create them again. After that they can be deleted.",
			nameSome(missing), state), nil
	}
	return "", nil
}

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// nameSome names the first of several profiles: `profiles "a", "b" and 3 more`.
func nameSome(names []string) string {
	quoted := make([]string, 0, namedInText)
	for _, name := range names[:min(len(names), namedInText)] {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	text := "profiles "
	if len(names) == 1 {
		text = "profile "
	}
	text += strings.Join(quoted, ", ")
	if more := len(names) - len(quoted); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// report makes an event on the ConfigMap of a namespace when its set begins to be held, and when
// that ends. why is empty if the set is not held.
func (d *definitions) report(ctx context.Context, from sources, why string) {
	var before string
	d.namespaces.Update(from.namespace, func(known *state.Namespace) { before, known.HeldReason = known.HeldReason, why })
	switch {
	case why != "" && before == "":
		log.FromContext(ctx).Info("the set of a namespace is held", "reason", why)
		event.Record(d.recorder, from.found, corev1.EventTypeWarning, eventHeld, actionHold, why)
	case why == "" && before != "" && from.found != nil:
		log.FromContext(ctx).Info("the set of a namespace is not held any more")
		event.Record(d.recorder, from.found, corev1.EventTypeNormal, eventReleased, actionHold, "All profiles of the set are there again; it changes with them.")
	}
}

// withAge adds the age of the profiles of a set to the annotations of its ConfigMap.
func withAge(annotations map[string]string, o oldest) map[string]string {
	aged := maps.Clone(annotations)
	if aged == nil {
		aged = map[string]string{}
	}
	aged[v1alpha1.OldestProfilesAnnotation] = o.annotation()
	return aged
}
