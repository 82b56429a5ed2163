// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

const (
	// raisePause is the least time between two revisions of a namespace that are
	// made only because a broker reported a higher one. Whoever may create pods may
	// answer like a broker.
	raisePause = time.Minute

	// reportAhead is how far ahead of the clock a revision may be that a broker
	// reports. Revisions are counted in milliseconds.
	reportAhead = 24 * time.Hour
)

// sealer numbers and signs the sets of namespaces. A set that is in place with a
// valid statement keeps its revision when other keys sign it. Only a set that brokers
// have to load again gets a new revision.
type sealer struct {
	namespaces *state.Store
	reader     client.Reader
	keys       Keys
	// reported is the highest revision that brokers of a namespace say they serve.
	reported func(namespace string) int64
	now      func() time.Time

	mu sync.Mutex
	// cluster stands for the cluster, empty until it was read.
	cluster types.UID
}

func newSealer(namespaces *state.Store, reader client.Reader, keys Keys, reported func(string) int64) *sealer {
	return &sealer{namespaces: namespaces, reader: reader, keys: keys, reported: reported, now: time.Now}
}

// sealed is a set's statement and its signature file, none if there is no set.
type sealed struct {
	signed.Statement
	signature []byte
	// memory is the signature of what the namespace remembers, which has the same
	// revision, also where there is no set.
	memory   []byte
	revision int64
	// fresh is true when the statement is another than the one in place.
	fresh bool
	// raised is true when the statement is new only because a broker reported a higher
	// revision.
	raised bool
}

// setInPlace returns the statement about the set in a ConfigMap. It returns false
// where the operator has signed none for this namespace and this set.
func (s *sealer) setInPlace(ctx context.Context, namespace *corev1.Namespace, found *corev1.ConfigMap) (signed.Statement, bool, error) {
	if found == nil || found.Data[signed.FileName] == "" {
		return signed.Statement{}, false, nil
	}
	ring, audience, err := s.trust(ctx, namespace)
	if err != nil {
		return signed.Statement{}, false, err
	}
	trust := signed.Trust{Keys: ring.Known(), Audience: audience}
	statement, err := trust.Verify([]byte(found.Data[profile.FileName]), []byte(found.Data[signed.FileName]))
	return statement, err == nil, nil // why it is not valid does not matter: it is overwritten
}

// trust returns the keys that sets of a namespace are signed with, and the audience
// that they are signed for.
func (s *sealer) trust(ctx context.Context, namespace *corev1.Namespace) (signing.Ring, string, error) {
	ring, err := s.keys.Ring(ctx)
	if err != nil {
		return signing.Ring{}, "", err
	}
	s.mu.Lock()
	cluster := s.cluster
	s.mu.Unlock()
	if cluster == "" {
		var system corev1.Namespace
		if err := s.reader.Get(ctx, types.NamespacedName{Name: contract.SystemNamespace}, &system); err != nil {
			return signing.Ring{}, "", fmt.Errorf("read the namespace whose UID stands for the cluster: %w", err)
		}
		cluster = system.UID
		s.mu.Lock()
		s.cluster = cluster
		s.mu.Unlock()
	}
	return ring, signing.Audience(cluster, namespace), nil
}

// statements are the statements in a ConfigMap. A statement that is not valid is
// the zero value.
type statements struct {
	set, memory           signed.Statement
	setValid, memoryValid bool
	// unsigned is true if the memory was never signed.
	unsigned bool
}

func (s *sealer) statementsIn(ctx context.Context, namespace *corev1.Namespace, found *corev1.ConfigMap) (in statements, err error) {
	if in.set, in.setValid, err = s.setInPlace(ctx, namespace, found); err != nil {
		return statements{}, err
	}
	if in.memory, in.memoryValid, err = s.memoryInPlace(ctx, namespace, found); err != nil {
		return statements{}, err
	}
	in.unsigned = found == nil || found.Annotations[v1alpha1.MemorySignatureAnnotation] == ""
	return in, nil
}

// covers reports whether the statements in place are about this set, whose digest is
// empty for none, and this memory, and have this revision.
func (in statements) covers(setDigest, memoryDigest string, revision int64) bool {
	memory := in.memoryValid && in.memory.Digest == memoryDigest && in.memory.Revision == revision
	if setDigest == "" {
		return memory
	}
	// A memory that was never signed is signed under the revision of its set.
	return in.setValid && in.set.Digest == setDigest && in.set.Revision == revision && (in.unsigned || memory)
}

// seal signs a set for a namespace, whose ConfigMap is found, and the memory in the
// annotations that are to lie beside it; data is nil for no set. The statement in place
// stays if it is about this set and brokers would take it. Set and memory have one
// revision, so that neither can be put back without the other.
func (s *sealer) seal(ctx context.Context, namespace *corev1.Namespace, found *corev1.ConfigMap, data []byte, annotations map[string]string) (sealed, error) {
	ring, audience, err := s.trust(ctx, namespace)
	if err != nil {
		return sealed{}, err
	}
	in, err := s.statementsIn(ctx, namespace, found)
	if err != nil {
		return sealed{}, err
	}
	digest := ""
	if data != nil {
		digest = profile.Digest(data)
	}
	memoryDigest := signed.Digest(memoryText(digest, annotations))
	statement, set := s.number(namespace, in, digest, memoryDigest)
	statement.Audience = audience
	about := signed.Statement{Format: signed.Format, Audience: audience + memoryAudience, Revision: statement.Revision, Time: statement.Time, Digest: memoryDigest}
	if set.memory, err = ring.Sign(about); err != nil {
		return sealed{}, fmt.Errorf("sign what namespace %s served: %w", namespace.Name, err)
	}
	if data == nil {
		return set, nil
	}
	set.Statement = statement
	if set.signature, err = ring.Sign(statement); err != nil {
		return sealed{}, fmt.Errorf("sign the set of namespace %s: %w", namespace.Name, err)
	}
	return set, nil
}

// number returns the statement for a set, without its audience: the one in place if it
// is about this set and memory and nobody knows of a higher revision, else one with a
// higher revision than all that are known. setDigest is empty for no set.
func (s *sealer) number(namespace *corev1.Namespace, in statements, setDigest, memoryDigest string) (signed.Statement, sealed) {
	now, known := s.now(), s.namespaces.Of(namespace)
	highest := max(known.Revision, in.set.Revision, in.memory.Revision)
	unchanged := in.covers(setDigest, memoryDigest, highest)
	raised := false
	reported := s.reported(namespace.Name)
	isCredible := reported <= now.Add(reportAhead).UnixMilli()
	mayRaise := !unchanged || now.Sub(known.Raised) >= raisePause
	if setDigest != "" && reported > highest && isCredible && mayRaise {
		highest, raised, unchanged = reported, unchanged, false
	}
	statement := signed.Statement{Format: signed.Format, Revision: max(highest+1, now.UnixMilli()), Time: now.UTC().Round(0), Digest: setDigest}
	switch {
	case unchanged && setDigest != "":
		statement = in.set
	case unchanged:
		statement.Revision, statement.Time = in.memory.Revision, in.memory.Time
	}
	return statement, sealed{revision: statement.Revision, fresh: !unchanged, raised: raised}
}

// recorded remembers the revision that a namespace was given by another process.
func (s *sealer) recorded(namespace *corev1.Namespace, revision int64) {
	s.namespaces.Update(namespace, func(known *state.Namespace) { known.Revision = max(known.Revision, revision) })
}

// remember stores the revision that a namespace's ConfigMap has.
func (s *sealer) remember(namespace *corev1.Namespace, set sealed) {
	s.namespaces.Update(namespace, func(known *state.Namespace) {
		known.Revision = set.revision
		if set.raised {
			known.Raised = s.now()
		}
	})
}
