// SPDX-License-Identifier: Apache-2.0

package controllers

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
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

const (
	// raisePause is the least time between two revisions of a namespace that are
	// made only because a broker says that it has a higher one. Whoever may make
	// pods may answer for a broker.
	raisePause = time.Minute

	// reportAhead is how far ahead of the clock, in the milliseconds that revisions
	// are counted in, one is believed that a broker reports.
	reportAhead = 24 * time.Hour
)

// Keys gives the keys that sets are signed with.
type Keys interface {
	Ring(ctx context.Context) (signing.Ring, error)
	// OnChange has f called after the keys changed; f must not block.
	OnChange(f func(context.Context))
}

// sealer numbers and signs the sets of namespaces. A set that is in place with a
// valid statement keeps its revision, whatever keys it is signed with: only what
// brokers have to take anew gets a new one.
type sealer struct {
	reader client.Reader
	keys   Keys
	// reported is the highest revision that brokers of a namespace say they serve.
	reported func(namespace string) int64
	now      func() time.Time

	mu      sync.Mutex
	cluster types.UID
	// highest are the revisions that this process wrote or found, by namespace, and
	// raised is when one was made because a broker had a higher one.
	highest map[string]numbered
	raised  map[string]time.Time
}

// numbered is a revision of a namespace, which may be another of the same name.
type numbered struct {
	namespace types.UID
	revision  int64
}

func newSealer(reader client.Reader, keys Keys, reported func(string) int64) *sealer {
	return &sealer{
		reader: reader, keys: keys, reported: reported, now: time.Now,
		highest: map[string]numbered{}, raised: map[string]time.Time{},
	}
}

// sealed is a set's statement and its signature file, none where there is no set.
type sealed struct {
	signed.Statement
	signature []byte
	// memory is the signature of what the namespace remembers, which has the same
	// revision, also where there is no set.
	memory   []byte
	revision int64
	// fresh tells that it is another statement than the one in place.
	fresh bool
	// raised tells that it is only for the sake of a broker with a higher revision.
	raised bool
}

// inPlace is the statement in a ConfigMap; false where it has none that the
// operator has signed for this namespace.
func (s *sealer) inPlace(ctx context.Context, namespace *corev1.Namespace, found *corev1.ConfigMap) (signed.Statement, bool, error) {
	if found == nil || found.Data[signed.FileName] == "" {
		return signed.Statement{}, false, nil
	}
	ring, audience, err := s.trust(ctx, namespace)
	if err != nil {
		return signed.Statement{}, false, err
	}
	trust := signed.Trust{Keys: ring.Known(), Audience: audience}
	statement, err := trust.Verify([]byte(found.Data[profile.FileName]), []byte(found.Data[signed.FileName]))
	return statement, err == nil, nil // what it is instead does not matter, it is overwritten
}

// trust returns what sets of a namespace are signed with, and for where.
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
			return signing.Ring{}, "", fmt.Errorf("reading the namespace whose UID stands for the cluster: %w", err)
		}
		cluster = system.UID
		s.mu.Lock()
		s.cluster = cluster
		s.mu.Unlock()
	}
	return ring, signing.Audience(cluster, namespace), nil
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
	statement, valid, err := s.inPlace(ctx, namespace, found)
	if err != nil {
		return sealed{}, err
	}
	memory, remembered, err := s.memoryInPlace(ctx, namespace, found)
	if err != nil {
		return sealed{}, err
	}
	now, digest := s.now(), ""
	if data != nil {
		digest = profile.Digest(data)
	}
	text := memoryText(digest, annotations)
	least := max(s.last(namespace), statement.Revision, memory.Revision)
	covered := remembered && memory.Digest == signed.Digest(text)
	keep := covered && memory.Revision == least
	if data != nil {
		// A memory that was never signed is signed under the revision of its set.
		unsigned := found == nil || found.Annotations[v1alpha1.MemorySignatureAnnotation] == ""
		keep = valid && statement.Digest == digest && statement.Revision == least && (unsigned || covered && memory.Revision == least)
	}
	raised := false
	if reported := s.reported(namespace.Name); data != nil && reported > least && reported <= now.Add(reportAhead).UnixMilli() && (!keep || s.mayRaise(namespace.Name, now)) {
		least, raised, keep = reported, keep, false
	}
	made := signed.Statement{Format: signed.Format, Audience: audience, Revision: max(least+1, now.UnixMilli()), Time: now.UTC().Round(0), Digest: digest}
	switch {
	case keep && data != nil:
		made = statement
	case keep:
		made.Revision, made.Time = memory.Revision, memory.Time
	}
	set := sealed{revision: made.Revision, fresh: !keep, raised: raised}
	about := signed.Statement{Format: signed.Format, Audience: audience + memoryAudience, Revision: made.Revision, Time: made.Time, Digest: signed.Digest(text)}
	if set.memory, err = ring.Sign(about); err != nil {
		return sealed{}, fmt.Errorf("signing what namespace %s served: %w", namespace.Name, err)
	}
	if data == nil {
		return set, nil
	}
	set.Statement = made
	if set.signature, err = ring.Sign(made); err != nil {
		return sealed{}, fmt.Errorf("signing the set of namespace %s: %w", namespace.Name, err)
	}
	return set, nil
}

// mayRaise tells whether it is time for another revision for a broker's sake.
func (s *sealer) mayRaise(namespace string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.raised[namespace]) >= raisePause
}

// last is the highest revision of a namespace that this process knows of.
func (s *sealer) last(namespace *corev1.Namespace) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.highest[namespace.Name]; known.namespace == namespace.UID {
		return known.revision
	}
	return 0
}

// recorded takes in what a namespace was given by another process.
func (s *sealer) recorded(namespace *corev1.Namespace, revision int64) {
	if last := s.last(namespace); revision > last {
		s.wrote(namespace, sealed{revision: revision})
	}
}

// wrote takes in what a namespace's ConfigMap has.
func (s *sealer) wrote(namespace *corev1.Namespace, set sealed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.highest[namespace.Name] = numbered{namespace.UID, set.revision}
	if set.raised {
		s.raised[namespace.Name] = s.now()
	}
}

// forget drops what is known of a namespace that is gone.
func (s *sealer) forget(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.highest, namespace)
	delete(s.raised, namespace)
}
