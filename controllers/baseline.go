// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

const (
	eventBaselineMissing = "BaselineMissing"
	actionCompare        = "Compare"
)

// memoryAudience is behind a namespace's audience in the statement about its memory, so
// that no broker takes the memory for a set.
const memoryAudience = "/memory"

// memoryText is what the signature of a memory is about: the annotations that hold it,
// and the set beside them, whose digest is empty where there is none.
func memoryText(digest string, annotations map[string]string) []byte {
	text, err := json.Marshal([]string{digest, annotations[v1alpha1.RemovedProfilesAnnotation], annotations[v1alpha1.ProfilesHistoryAnnotation]})
	if err != nil {
		panic("controllers: " + err.Error()) // texts
	}
	return text
}

// memoryIn is what the signature in a ConfigMap should be about.
func memoryIn(found *corev1.ConfigMap) []byte {
	digest := ""
	if file, has := found.Data[profile.FileName]; has {
		digest = profile.Digest([]byte(file))
	}
	return memoryText(digest, found.Annotations)
}

// baselines find out what a namespace served before this process began. What the
// operator did not sign, or is older than what it recorded, counts for nothing.
type baselines struct {
	sealer   *sealer
	record   *record
	recorder events.EventRecorder
	missing  *prometheus.GaugeVec

	mu sync.Mutex
	// told are the namespaces of which it was told that their baseline is missing.
	told map[string]types.UID
}

func newBaselines(sealer *sealer, record *record, recorder events.EventRecorder) *baselines {
	return &baselines{
		sealer: sealer, record: record, recorder: recorder, told: map[string]types.UID{},
		missing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "crypto_broker_operator_baselines_missing",
			Help: "1 for a namespace in which no set is written, because what it served before is not known and not all of its profiles are allowed; others are not listed.",
		}, []string{"namespace"}),
	}
}

// read returns what a namespace served, by its ConfigMap. A set that was rendered to
// the same file saves reading it.
func (b *baselines) read(ctx context.Context, ns *corev1.Namespace, found *corev1.ConfigMap, set render.Result) (downgrade.State, error) {
	last, served, err := b.record.of(ctx, ns)
	if err != nil {
		return downgrade.State{}, fmt.Errorf("whether the namespace was served before could not be found out: %w", err)
	}
	if !served {
		if found == nil {
			return downgrade.State{}, nil
		}
		return remembered(ctx, found.Data[profile.FileName], found.Annotations, set), nil
	}
	b.sealer.recorded(ns, last.revision)
	what, why, err := b.trusted(ctx, ns, found, last.revision)
	if err != nil {
		return downgrade.State{}, err
	}
	if what == everything {
		return remembered(ctx, found.Data[profile.FileName], found.Annotations, set), nil
	}
	file := ""
	switch {
	case what == setAlone:
		file = found.Data[profile.FileName]
	case set.Refusal == "" && last.set != "" && givenSet(set.Digest) == last.set:
		// What was given last is known after all: it is what the resources say still.
		what, file = setAlone, string(set.Data)
	}
	b.tell(ctx, ns, what, why)
	return remembered(ctx, file, nil, set).Lost(), nil
}

// remembered reads a State. What the operator itself wrote and can't read any more is
// not compared with: to withhold everything for that would stop every application.
func remembered(ctx context.Context, file string, annotations map[string]string, set render.Result) downgrade.State {
	state, err := downgrade.Read(file, annotations, set)
	if err != nil {
		log.FromContext(ctx).Error(err, "what the namespace served can't be read; what comes now is not compared with it")
	}
	return state
}

// trust is how much of a ConfigMap says what a namespace served.
type trust int

const (
	nothing trust = iota
	setAlone
	everything
)

// trusted looks at the signatures in the ConfigMap of a namespace whose last revision
// is recorded, and says what is wrong with them.
func (b *baselines) trusted(ctx context.Context, ns *corev1.Namespace, found *corev1.ConfigMap, lowest int64) (what trust, why string, err error) {
	if found == nil {
		return nothing, "it is not there, though the namespace had one", nil
	}
	set, isSigned, err := b.sealer.inPlace(ctx, ns, found)
	if err != nil {
		return nothing, "", err
	}
	memory, isRemembered, err := b.sealer.memoryInPlace(ctx, ns, found)
	if err != nil {
		return nothing, "", err
	}
	_, has := found.Data[profile.FileName]
	switch {
	case !has && isRemembered && memory.Revision >= lowest:
		return everything, "", nil
	case !has && isRemembered, has && isSigned && set.Revision < lowest:
		return nothing, "it is older than what the namespace was given last", nil
	case !has:
		return nothing, "its set is not there, and what it says of removed profiles is not signed by the operator", nil
	case !isSigned:
		return nothing, "its set is not signed by the operator", nil
	case isRemembered && memory.Revision == set.Revision:
		return everything, "", nil
	case set.Revision > lowest:
		// Signed by an operator that keeps no record and signs no memory, one before
		// this version.
		return everything, "", nil
	default:
		return setAlone, "what it says of removed profiles is not signed by the operator together with its set", nil
	}
}

// tell announces that a baseline is missing, once.
func (b *baselines) tell(ctx context.Context, ns *corev1.Namespace, what trust, why string) {
	b.mu.Lock()
	told := b.told[ns.Name]
	b.told[ns.Name] = ns.UID
	b.mu.Unlock()
	if told == ns.UID {
		return
	}
	then := "Brokers keep what they have, and get something else once each profile of the namespace is allowed."
	if what == setAlone {
		then = "Its set is known; each profile of a name that is not in the set has to be allowed."
	}
	note := fmt.Sprintf("What the namespace served before is not all known, for its ConfigMap %s was changed while no operator ran: %s. %s", v1alpha1.ProfilesConfigMap, why, then)
	log.FromContext(ctx).Info(note)
	about := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: v1alpha1.ProfilesConfigMap},
	}
	b.recorder.Eventf(about, nil, corev1.EventTypeWarning, eventBaselineMissing, actionCompare, "%s", cut(note, maxEventNote))
}

// show sets the metric of a namespace.
func (b *baselines) show(namespace string, missing bool) {
	if missing {
		b.missing.WithLabelValues(namespace).Set(1)
		return
	}
	b.missing.DeleteLabelValues(namespace)
}

// forget drops what is known of a namespace that is gone.
func (b *baselines) forget(namespace string) {
	b.mu.Lock()
	delete(b.told, namespace)
	b.mu.Unlock()
	b.show(namespace, false)
	b.record.forget(namespace)
}

// memoryInPlace is the statement about the memory in a ConfigMap; false where it has
// none that the operator has signed for this namespace, about what is there.
func (s *sealer) memoryInPlace(ctx context.Context, namespace *corev1.Namespace, found *corev1.ConfigMap) (signed.Statement, bool, error) {
	if found == nil || found.Annotations[v1alpha1.MemorySignatureAnnotation] == "" {
		return signed.Statement{}, false, nil
	}
	ring, audience, err := s.trust(ctx, namespace)
	if err != nil {
		return signed.Statement{}, false, err
	}
	trust := signed.Trust{Keys: ring.Known(), Audience: audience + memoryAudience}
	statement, err := trust.Verify(memoryIn(found), []byte(found.Annotations[v1alpha1.MemorySignatureAnnotation]))
	return statement, err == nil, nil // what it is instead does not matter, it is overwritten
}
