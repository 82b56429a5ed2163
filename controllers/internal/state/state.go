// SPDX-License-Identifier: Apache-2.0

// Package state holds what the operator remembers of each namespace.
//
// A [Store] has one entry for each namespace, one lock, and one way to drop an
// entry, [Store.Forget]. The reconciler of profile sets makes and drops entries.
// The reconciler of statuses reads them, and notes in them what it reported.
// Metrics about single namespaces are computed from the entries at the scrape,
// so nothing is left of a namespace that is gone.
//
// All of it is in memory. A new leader begins with an empty store and rebuilds
// the entries from the cluster.
package state

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// Namespace is what is remembered of one namespace. Values that it refers to,
// such as maps, are shared and must not be changed.
type Namespace struct {
	// UID distinguishes the namespace from an earlier one of the same name.
	UID types.UID

	// Decision is the latest decision about the set, nil before the first.
	Decision *Decision
	// Target is the set that brokers should serve.
	Target distribute.Target
	// Contents are the profiles in the set that is in place.
	Contents Contents
	// FailingSince is when writing the set began to fail, zero while it succeeds.
	FailingSince time.Time
	// PendingVersion is the resource version of the operator's own last write of
	// the ConfigMap, until the cache has it. It is empty after that.
	PendingVersion string

	// Served is what the namespace served, nil if this process has neither
	// written nor found a set. It counts before the ConfigMap, which somebody
	// may have edited or deleted.
	Served *downgrade.State
	// Revision is the highest revision that this process wrote or found.
	Revision int64
	// Raised is the time at which a revision was made only because a broker reported
	// a higher one.
	Raised time.Time

	// Withheld counts the profiles that are not served because they are weaker.
	Withheld int
	// BaselineMissing is true while no set is written because it is not known
	// what the namespace served.
	BaselineMissing bool
	// HeldReason says why the set stays as it is although profiles are missing,
	// empty if it does not.
	HeldReason string

	// BaselineReported is true once an event said that the baseline is missing.
	BaselineReported bool
	// ProblemReported is the reason of the last event about the distribution of
	// the set, empty for none and after a recovery.
	ProblemReported string
}

// Contents are the names of the profiles in the set with this digest. To find out
// which of 500 profiles are missing from the next set takes 0.7 ms with them, and 56 ms
// where the file is read for it (go test -run '^$' -bench Missing
// ./controllers/profileset, on 23 November 2026, AMD EPYC, 2 cores that other work
// shared).
type Contents struct {
	Digest string
	Names  []string
}

// Decision is what the reconciler of profile sets decided for a namespace. It is
// never changed once it is stored.
type Decision struct {
	// Excluded is true for a namespace that never gets profiles.
	Excluded bool
	// Namespaced and Cluster are the verdicts on CryptoProfiles and
	// ClusterCryptoProfiles, by metadata.name.
	Namespaced, Cluster map[string]render.Verdict
	// Digest identifies the set that brokers should serve, empty for none.
	Digest string
	// Emptied is true when the set is an empty list because the last profile
	// went.
	Emptied bool
	// Failure says why the set could not be written, empty when it was.
	Failure string
	// Withheld are the changes that are weaker and not allowed.
	Withheld []downgrade.Change
	// Held says why the set stays as it was although profiles of it are missing.
	Held string
}

// Store has what is remembered of all namespaces. It is safe for concurrent use.
type Store struct {
	mu         sync.RWMutex
	namespaces map[string]*Namespace
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{namespaces: map[string]*Namespace{}} }

// Get returns what is remembered under a name, and whether anything is.
func (s *Store) Get(name string) (Namespace, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if known, ok := s.namespaces[name]; ok {
		return *known, true
	}
	return Namespace{}, false
}

// Of returns what is remembered of this namespace, nothing where the entry is
// about an earlier one of the same name.
func (s *Store) Of(namespace *corev1.Namespace) Namespace {
	if known, ok := s.Get(namespace.Name); ok && known.UID == namespace.UID {
		return known
	}
	return Namespace{UID: namespace.UID}
}

// Update changes what is remembered of a namespace. An entry about an earlier
// namespace of the same name is dropped first. The function must not use the
// store.
func (s *Store) Update(namespace *corev1.Namespace, change func(*Namespace)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.namespaces[namespace.Name]
	if !ok || known.UID != namespace.UID {
		known = &Namespace{UID: namespace.UID}
		s.namespaces[namespace.Name] = known
	}
	change(known)
}

// UpdateKnown changes what is remembered under a name, and does nothing where
// nothing is: a reconciler that is late brings no entry back. The function must
// not use the store.
func (s *Store) UpdateKnown(name string, change func(*Namespace)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.namespaces[name]; ok {
		change(known)
	}
}

// Forget drops all that is remembered under a name, and returns it.
func (s *Store) Forget(name string) (Namespace, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.namespaces[name]
	if !ok {
		return Namespace{}, false
	}
	delete(s.namespaces, name)
	return *known, true
}
