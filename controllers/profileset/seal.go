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
	// raisePause is the shortest time between two revisions of a namespace that are made only
	// because a broker reported a higher one. Anybody who may create pods can answer like a
	// broker.
	raisePause = time.Minute

	// reportAhead is how far a reported revision may be ahead of the clock. Revisions are times
	// in milliseconds.
	reportAhead = 24 * time.Hour
)

// sealer numbers and signs the sets of namespaces. A current set with a valid statement keeps its
// revision when other keys sign it. Only a set that brokers have to load again gets a new
// revision.
type sealer struct {
	namespaces *state.Store
	reader     client.Reader
	keys       Keys
	// reported returns the highest revision that brokers of a namespace report.
	reported func(namespace string) int64
	now      func() time.Time

	mu sync.Mutex
	// cluster is the id of the cluster. It is empty until it was read.
	cluster types.UID
}

func newSealer(namespaces *state.Store, reader client.Reader, keys Keys, reported func(string) int64) *sealer {
	return &sealer{namespaces: namespaces, reader: reader, keys: keys, reported: reported, now: time.Now}
}

// sealed has the statement and the signature file of a set. The file is empty if there is no set.
type sealed struct {
	signed.Statement
	signature []byte
	// memory is the signature of the namespace's memory. It has the same revision, even if there
	// is no set.
	memory   []byte
	revision int64
	// fresh reports whether the statement differs from the current one.
	fresh bool
	// raised reports whether the statement is new only because a broker reported a higher
	// revision.
	raised bool
}

// setInPlace returns the statement about the set in a ConfigMap. It returns false if the operator
// has not signed a statement for this namespace and this set.
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

// trust returns the keys and the audience of the signatures of a namespace's sets.
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

// covers reports whether the current statements are about this set and this memory, and have this
// revision. The digest is empty if there is no set.
func (in statements) covers(setDigest, memoryDigest string, revision int64) bool {
	memory := in.memoryValid && in.memory.Digest == memoryDigest && in.memory.Revision == revision
	if setDigest == "" {
		return memory
	}
	// A memory that was never signed is signed under the revision of its set.
	return in.setValid && in.set.Digest == setDigest && in.set.Revision == revision && (in.unsigned || memory)
}

// seal signs a set for a namespace with the ConfigMap found, and the memory in its annotations.
// data is nil if there is no set. The current statement stays if it is about this set and brokers
// would accept it. Set and memory have the same revision, so neither can be restored without the
// other.
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

// number returns the statement for a set, without its audience. It is the current statement if
// that is about this set and memory and has the highest known revision. Otherwise it is a new
// statement with a higher revision than all known ones. setDigest is empty if there is no set.
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

// recorded stores the revision that another process gave a namespace.
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
