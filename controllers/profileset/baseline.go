// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/event"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/profileset/internal/record"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// baselines finds out what a namespace served before this process began. It ignores sets that the
// operator did not sign, and sets that are older than the record.
type baselines struct {
	namespaces *state.Store
	sealer     *sealer
	record     *record.Record
	recorder   events.EventRecorder
}

func newBaselines(namespaces *state.Store, sealer *sealer, record *record.Record, recorder events.EventRecorder) *baselines {
	return &baselines{namespaces: namespaces, sealer: sealer, record: record, recorder: recorder}
}

// read returns the State of a namespace from its ConfigMap. If the rendered set has the same
// file, the file need not be parsed.
func (b *baselines) read(ctx context.Context, from sources) (downgrade.State, error) {
	last, served, err := b.record.Of(ctx, from.namespace)
	if err != nil {
		return downgrade.State{}, fmt.Errorf("find out whether the namespace was served before: %w", err)
	}
	if !served {
		if from.found == nil {
			return downgrade.State{}, nil
		}
		return remembered(ctx, from.found.Data[profile.FileName], from.found.Annotations, from.rendered), nil
	}
	b.sealer.recorded(from.namespace, last.Revision)
	trusted, why, err := b.trusted(ctx, from.namespace, from.found, last.Revision)
	if err != nil {
		return downgrade.State{}, err
	}
	if trusted == everything {
		return remembered(ctx, from.found.Data[profile.FileName], from.found.Annotations, from.rendered), nil
	}
	file := ""
	switch {
	case trusted == setAlone:
		file = from.found.Data[profile.FileName]
	case from.rendered.Refusal == "" && last.Set != "" && record.Beginning(from.rendered.Digest) == last.Set:
		// The profiles still describe the last set of the namespace, so it is known.
		trusted, file = setAlone, string(from.rendered.Data)
	}
	b.report(ctx, from.namespace, trusted, why)
	return remembered(ctx, file, nil, from.rendered).Lost(), nil
}

// remembered reads a State. A State that the operator wrote and cannot read any more counts as
// empty, because withholding every profile would stop every application.
func remembered(ctx context.Context, file string, annotations map[string]string, set render.Result) downgrade.State {
	state, err := downgrade.Read(file, annotations, set)
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot read which profiles the namespace served; new profiles are not compared with them")
	}
	return state
}

// trust says which parts of a ConfigMap can be trusted.
type trust int

const (
	nothing trust = iota
	setAlone
	everything
)

// trusted returns which parts of the ConfigMap of a namespace can be trusted, by its signatures
// and by the recorded revision. If it is not everything, it returns why.
func (b *baselines) trusted(ctx context.Context, ns *corev1.Namespace, found *corev1.ConfigMap, lowest int64) (how trust, why string, err error) {
	if found == nil {
		return nothing, "it is missing, although the namespace had one", nil
	}
	set, isSigned, err := b.sealer.setInPlace(ctx, ns, found)
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
		return nothing, "its set is missing, and its text about removed profiles is not signed by the operator", nil
	case !isSigned:
		return nothing, "its set is not signed by the operator", nil
	case isRemembered && memory.Revision == set.Revision:
		return everything, "", nil
	case set.Revision > lowest:
		// An operator of an earlier version, which has no record and does not sign the memory,
		// has signed it.
		return everything, "", nil
	default:
		return setAlone, "the operator did not sign its annotations about removed profiles together with its set", nil
	}
}

// report makes an event that a baseline is missing, once for each namespace.
func (b *baselines) report(ctx context.Context, ns *corev1.Namespace, trusted trust, why string) {
	reported := false
	b.namespaces.Update(ns, func(known *state.Namespace) { reported, known.BaselineReported = known.BaselineReported, true })
	if reported {
		return
	}
	then := "Brokers keep the set that they have until each profile of the namespace is allowed."
	if trusted == setAlone {
		then = "Its set is known; each profile of a name that is not in the set has to be allowed."
	}
	note := fmt.Sprintf("The operator does not know all profiles that the namespace served before, because its ConfigMap %s was changed while no operator ran: %s. %s", v1alpha1.ProfilesConfigMap, why, then)
	log.FromContext(ctx).Info(note)
	about := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: v1alpha1.ProfilesConfigMap},
	}
	event.Record(b.recorder, about, corev1.EventTypeWarning, eventBaselineMissing, actionCompare, note)
}
