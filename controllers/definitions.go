// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// Names of the resource definitions of profiles. Each is deleted with all of its
// profiles.
const (
	namespacedDefinition = "cryptoprofiles.cryptobroker.io"
	clusterDefinition    = "clustercryptoprofiles.cryptobroker.io"
)

const (
	eventHeld     = "ProfilesHeld"
	eventReleased = "ProfilesReleased"
	actionHold    = "Hold"
)

// namedInText is how many profiles a sentence names.
const namedInText = 5

// definitions tells profiles that were deleted from profiles that went with their
// resource definition. The latter stay in the sets of their namespaces: whoever
// deletes a definition seldom means to stop the applications of a whole cluster.
type definitions struct {
	// live reads from the API server: the definition has to be as it was after the
	// profile went, and a cache may be behind.
	live     client.Reader
	recorder events.EventRecorder

	held *prometheus.GaugeVec
	mu   sync.Mutex
	// told is why the set of a namespace is held, by namespace.
	told map[string]string
}

func newDefinitions(live client.Reader, recorder events.EventRecorder) *definitions {
	return &definitions{
		live: live, recorder: recorder, told: map[string]string{},
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "crypto_broker_operator_sets_held",
			Help: "1 for a namespace whose set stays as it is, because profiles of it went with their resource definition; others are not listed.",
		}, []string{"namespace"}),
	}
}

// oldest says, by definition, when the oldest profile was created that applies to
// a namespace.
type oldest map[string]metav1.Time

func oldestOf(namespaced []v1alpha1.CryptoProfile, cluster []v1alpha1.ClusterCryptoProfile, ns *corev1.Namespace) oldest {
	all := oldest{}
	add := func(definition string, object client.Object) {
		created, known := all[definition]
		if own := object.GetCreationTimestamp(); object.GetDeletionTimestamp().IsZero() && (!known || own.Before(&created)) {
			all[definition] = own
		}
	}
	for i := range namespaced {
		add(namespacedDefinition, &namespaced[i])
	}
	for i := range cluster {
		if render.Selects(&cluster[i].Spec, ns.Labels) {
			add(clusterDefinition, &cluster[i])
		}
	}
	return all
}

// annotation is the value of OldestProfilesAnnotation, empty for none.
func (o oldest) annotation() string {
	if len(o) == 0 {
		return ""
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic("controllers: " + err.Error()) // names and times
	}
	return string(text)
}

// readOldest returns what a ConfigMap says. One that can't be read is as none.
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

// hold says in a sentence why profiles that are missing now stay in the set that
// is found in a namespace, and nothing where they were deleted. An error says that
// this is not known.
func (d *definitions) hold(ctx context.Context, found *corev1.ConfigMap, missing []string) (string, error) {
	sources := readOldest(ctx, found)
	for _, name := range []string{namespacedDefinition, clusterDefinition} {
		definition := &metav1.PartialObjectMetadata{}
		definition.SetGroupVersionKind(definitionKind)
		err := d.live.Get(ctx, types.NamespacedName{Name: name}, definition)
		created, known := sources[name]
		var state string
		switch {
		case apierrors.IsNotFound(err):
			state = "there is no resource definition " + name
		case err != nil:
			return "", fmt.Errorf("profiles are missing, and whether they were deleted or went with the resource definition %s can't be told: %w", name, err)
		case !definition.DeletionTimestamp.IsZero():
			state = "the resource definition " + name + " is being deleted"
		case known && created.Before(&definition.CreationTimestamp):
			state = "the resource definition " + name + " was deleted and made anew"
		default:
			continue
		}
		return fmt.Sprintf("The set of the namespace stays as it was, with the missing %s: %s, and profiles that went with their definition are not taken out of service. Create them again; then they can be deleted, too.",
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
	text := choose(len(names), "profile ", "profiles ") + strings.Join(quoted, ", ")
	if more := len(names) - len(quoted); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// tell announces on the ConfigMap of a namespace that its set is held, or is not
// any more, once.
func (d *definitions) tell(ctx context.Context, namespace string, found *corev1.ConfigMap, why string) {
	d.mu.Lock()
	before := d.told[namespace]
	if why == "" {
		delete(d.told, namespace)
		d.held.DeleteLabelValues(namespace)
	} else {
		d.told[namespace] = why
		d.held.WithLabelValues(namespace).Set(1)
	}
	d.mu.Unlock()
	switch {
	case why != "" && before == "":
		log.FromContext(ctx).Info("the set of a namespace is held", "reason", why)
		d.recorder.Eventf(found, nil, corev1.EventTypeWarning, eventHeld, actionHold, "%s", cut(why, maxEventNote))
	case why == "" && before != "" && found != nil:
		log.FromContext(ctx).Info("the set of a namespace is not held any more")
		d.recorder.Eventf(found, nil, corev1.EventTypeNormal, eventReleased, actionHold, "All profiles of the set are there again; it changes with them.")
	}
}

// forget drops what is known of a namespace that is gone.
func (d *definitions) forget(namespace string) { d.tell(context.Background(), namespace, nil, "") }

// noting adds to the annotations of a ConfigMap how old the profiles are that its
// set is made of.
func noting(annotations map[string]string, o oldest) map[string]string {
	noted := maps.Clone(annotations)
	if noted == nil {
		noted = map[string]string{}
	}
	noted[v1alpha1.OldestProfilesAnnotation] = o.annotation()
	return noted
}
