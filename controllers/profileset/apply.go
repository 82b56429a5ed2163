// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/profileset/internal/record"
)

// writePause is the shortest time between two writes of one namespace's set. The first of many
// changes is written at once, and the others together, because each write wakes the kubelet of
// each pod.
const writePause = 200 * time.Millisecond

// authoritiesPause is the wait for the authorities of the key gateway's certificate, which a new
// leader reads at its start. The change of the authorities ends the wait as well.
const authoritiesPause = time.Second

// apply writes the namespace's ConfigMap if it differs, and returns the set that brokers should
// serve after that. If nothing can be written, this is the current set. If it is too early to
// write again, pause is greater than 0.
func (r *reconciler) apply(ctx context.Context, from sources, set guarded) (target distribute.Target, pause time.Duration, err error) {
	if set.Refusal != "" {
		return r.targetInPlace(ctx, from), 0, nil
	}
	data := set.Data
	if len(set.Names) == 0 && !set.frozen {
		needed, err := r.needsEmptySet(ctx, from)
		if err != nil {
			return r.targetInPlace(ctx, from), 0, err
		}
		if !needed {
			data = nil
		}
		if data == nil && set.state.IsEmpty() {
			return r.remove(ctx, from, set)
		}
	}
	seal, err := r.sealer.seal(ctx, from.namespace, from.found, data, set.annotations)
	if err != nil {
		return r.targetInPlace(ctx, from), 0, err
	}
	set.annotations = maps.Clone(set.annotations)
	set.annotations[v1alpha1.MemorySignatureAnnotation] = string(seal.memory)
	authorities := r.authoritiesFor(set, from.found)
	if authorities == nil && r.awaitsAuthorities(set) {
		return r.targetInPlace(ctx, from), authoritiesPause, nil
	}
	files := files(data, seal.signature, authorities)
	if isAsDesired(from.found, files, set.annotations) {
		r.remember(from.namespace, set, seal)
		return r.targetOf(from.namespace, seal.Statement), 0, nil
	}
	if pause := writePause - time.Since(r.namespaces.Of(from.namespace).Target.Written); pause > 0 {
		return distribute.Target{}, pause, nil
	}
	if err := r.restored(); err != nil {
		return r.targetInPlace(ctx, from), 0, err
	}
	from.pass.Compiled()
	if err := r.configMaps.write(ctx, from.namespace, from.found, files, set.annotations); err != nil {
		return r.targetInPlace(ctx, from), 0, err
	}
	from.pass.Written(set.Digest, seal.Revision)
	r.remember(from.namespace, set, seal)
	r.guard.weakened.Add(float64(len(set.allowed)))
	r.reportWeakened(ctx, from.namespace.Name, set.allowed)
	r.recordWritten(from, set, seal.Revision, data)
	return r.written(ctx, from, set, seal, data), 0, nil
}

// authoritiesFor returns the authorities of the key gateway's certificate if brokers need them
// with a set, or nil. While this process does not know them, the authorities in the ConfigMap
// stay.
func (r *reconciler) authoritiesFor(set guarded, found *corev1.ConfigMap) []byte {
	if r.keyGateway == nil || !set.NamesKeyProviders {
		return nil
	}
	if authorities := r.keyGateway.Authorities(); authorities != nil || found == nil {
		return authorities
	}
	if inPlace, ok := found.Data[contract.KeyGatewayAuthorities]; ok {
		return []byte(inPlace)
	}
	return nil
}

// awaitsAuthorities reports whether a set needs authorities that will soon be known. If it were
// written without them, brokers would get them with the kubelet's next round, a minute later.
func (r *reconciler) awaitsAuthorities(set guarded) bool {
	return r.keyGateway != nil && set.NamesKeyProviders && !r.keyGateway.Looked()
}

// needsEmptySet reports whether the ConfigMap of a namespace without profiles has to hold an
// empty set. It has to if brokers have another set, or may get one, and must learn that there is
// nothing to serve.
func (r *reconciler) needsEmptySet(ctx context.Context, from sources) (bool, error) {
	all, started, err := distribute.Brokers(ctx, r.client, from.namespace.Name)
	if err != nil {
		return false, err
	}
	if r.targetInPlace(ctx, from).Digest != "" {
		return all > 0, nil
	}
	return started > 0, nil
}

// remove deletes the ConfigMap of a namespace that has nothing to serve and nothing
// to remember.
func (r *reconciler) remove(ctx context.Context, from sources, set guarded) (target distribute.Target, pause time.Duration, err error) {
	if from.found != nil {
		deleted, err := r.configMaps.remove(ctx, from.namespace, from.found)
		if err != nil {
			return r.targetInPlace(ctx, from), 0, err
		}
		if deleted {
			r.recordWritten(from, set, 0, nil)
			log.FromContext(ctx).Info("deleted the ConfigMap of a namespace without profiles, brokers and a baseline")
		}
	}
	r.setServed(from.namespace, set.state)
	return distribute.Target{}, 0, nil
}

// remember stores the content of the namespace's ConfigMap.
func (r *reconciler) remember(namespace *corev1.Namespace, set guarded, seal sealed) {
	r.setServed(namespace, set.state)
	r.sealer.remember(namespace, seal)
	if !set.state.IsNew() {
		r.record.Note(namespace, record.Given{Revision: seal.revision, Set: record.Beginning(seal.Digest)})
	}
}

// setServed stores what a namespace serves. It takes a copy, because a pointer into a guarded set would
// keep all of that set in memory.
func (r *reconciler) setServed(namespace *corev1.Namespace, served downgrade.State) {
	r.namespaces.Update(namespace, func(known *state.Namespace) { known.Served = &served })
}

// written logs a write and returns the set that brokers should serve after it.
func (r *reconciler) written(ctx context.Context, from sources, set guarded, seal sealed, data []byte) distribute.Target {
	logger := log.FromContext(ctx)
	if data == nil {
		logger.Info("removed the set from the ConfigMap of a namespace; its baseline is kept", "profilesWithheld", len(set.withheld))
		return distribute.Target{}
	}
	r.namespaces.Update(from.namespace, func(known *state.Namespace) { known.Contents = state.Contents{Digest: set.Digest, Names: set.Names} })
	if !seal.fresh && from.found != nil && from.found.Data[profile.FileName] == string(data) {
		logger.Info("updated the signature or the baseline in the ConfigMap of a namespace; the set is the same", "digest", set.Digest, "revision", seal.Revision)
		return r.targetOf(from.namespace, seal.Statement) // brokers need not load this at once
	}
	logger.Info("wrote the set of a namespace", "profiles", len(set.Names), "digest", set.Digest, "revision", seal.Revision)
	return distribute.Target{Digest: set.Digest, Revision: seal.Revision, Written: time.Now()}
}

// targetOf returns the target for the set in the ConfigMap. A set that this process wrote keeps
// the time of the write.
func (r *reconciler) targetOf(namespace *corev1.Namespace, statement signed.Statement) distribute.Target {
	if target := r.namespaces.Of(namespace).Target; target.Digest == statement.Digest && target.Revision == statement.Revision {
		return target
	}
	return distribute.Target{Digest: statement.Digest, Revision: statement.Revision}
}

// targetInPlace returns the target for the set in the ConfigMap if no decision is known. A set
// without a valid signature has no revision.
func (r *reconciler) targetInPlace(ctx context.Context, from sources) distribute.Target {
	if from.found == nil {
		return distribute.Target{}
	}
	file, ok := from.found.Data[profile.FileName]
	if !ok {
		return distribute.Target{}
	}
	statement, valid, err := r.sealer.setInPlace(ctx, from.namespace, from.found)
	if !valid || err != nil {
		statement = signed.Statement{Digest: profile.Digest([]byte(file))}
	}
	return r.targetOf(from.namespace, statement)
}
