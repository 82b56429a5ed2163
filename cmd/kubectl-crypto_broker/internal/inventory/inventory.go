// SPDX-License-Identifier: Apache-2.0

// Package inventory lists the cryptography that brokers have served, by workload, with the
// verdicts of standards on it: FIPS 140-3, and the plans of NIST and the NSA for the time after
// quantum computers. It also writes the list as a CycloneDX CBOM, and compares it with an earlier
// list.
package inventory

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/uses"
)

// Version is the version of the JSON of an Inventory. Fields that come later do not change it.
const Version = 1

// Inventory is the cryptography in use.
type Inventory struct {
	Version int       `json:"version"`
	Made    time.Time `json:"made"`
	// Namespace is empty for all namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Only are the primitives and algorithms to which Uses is restricted, empty for all.
	Only []string `json:"only,omitempty"`
	// UsedSince leaves out uses without a call since then.
	UsedSince *time.Time `json:"usedSince,omitempty"`
	// Uses are sorted by namespace, workload, and what was used.
	Uses []Use `json:"uses"`
	uses.Summary
}

// Use is a use of cryptography by calls through the brokers of one workload.
type Use struct {
	Namespace string `json:"namespace"`
	// Workload is kind/name, or pod/name for a pod without an owner.
	Workload string `json:"workload"`
	// Container is the caller, empty if all callers share a socket.
	Container string `json:"container,omitempty"`
	Profile   string `json:"profile"`
	Operation string `json:"operation"`
	// Algorithm is empty for GetPublicKey.
	Algorithm string `json:"algorithm,omitempty"`
	Keys      []Key  `json:"keys,omitempty"`
	// Primitives are the primitives of the algorithm and the keys, such as "rsa-2048" and
	// "sha-256".
	Primitives []string `json:"primitives"`
	Verdict
	// Pods is the number of pods that made the calls.
	Pods  int    `json:"pods"`
	Calls uint64 `json:"calls"`
	// Since is the time at which the first of these brokers began to count, and Last is the end
	// of the last call.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
}

// Key is the kind of a key.
type Key struct {
	Algorithm string `json:"algorithm"`
	// Bits is 0 if the size is not known, or if the name has it.
	Bits int `json:"bits,omitempty"`
}

// String returns the key for people, such as "RSA 2048".
func (k Key) String() string { return profile.UsedKey{Algorithm: k.Algorithm, Bits: k.Bits}.String() }

// id identifies uses that are added up.
func (u *Use) id() string {
	return fmt.Sprintf("%q", []string{
		u.Namespace, u.Workload, u.Container, u.Profile, u.Operation, u.Algorithm, fmt.Sprint(u.Keys), fmt.Sprint(u.Primitives), u.FIPSReason,
	})
}

// Maker makes an inventory.
type Maker struct {
	Client kubernetes.Interface
	// Progress receives a line every two seconds.
	Progress io.Writer
	// Namespace is empty for all namespaces.
	Namespace string
	Only      Selection
	// UsedSince is zero for all uses.
	UsedSince time.Time
	Now       time.Time

	found map[string]*Use
}

// Make asks the brokers. If some of them do not answer, the inventory says so, and Make returns
// no error.
func (m *Maker) Make(ctx context.Context) (*Inventory, error) {
	m.found = map[string]*Use{}
	asking := uses.Start(ctx, m.Client, m.Progress)
	summary, err := asking.Wait(asking.Namespace(m.Namespace, m.take))
	if err != nil {
		return nil, err
	}
	if summary.Brokers == 0 && m.Namespace != "" {
		_, err := m.Client.CoreV1().Namespaces().Get(ctx, m.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) { // without the right to check, the command assumes that the namespace exists
			return nil, fmt.Errorf("there is no namespace %q", m.Namespace)
		}
	}
	all := &Inventory{Version: Version, Made: m.Now.UTC().Truncate(time.Second), Namespace: m.Namespace, Only: m.Only, Uses: []Use{}, Summary: summary}
	if !m.UsedSince.IsZero() {
		all.UsedSince = new(m.UsedSince.UTC())
	}
	for _, u := range m.found {
		all.Uses = append(all.Uses, *u)
	}
	slices.SortFunc(all.Uses, func(a, b Use) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.id(), b.id()))
	})
	return all, nil
}

// take adds up what a broker has counted.
func (m *Maker) take(answer *uses.Answer) {
	if len(answer.Uses.Other) > 0 {
		answer.Unknown(uses.TooMany)
	}
	seen := map[*Use]bool{}
	for _, row := range answer.Uses.Uses {
		u, known := describe(&row)
		if !known {
			answer.Unknown(uses.NewerBroker)
			continue
		}
		if len(u.Primitives) == 0 || row.Last.Before(m.UsedSince) || !m.Only.Matches(u) {
			continue
		}
		u.Namespace, u.Workload = answer.Pod.Namespace, answer.Workload
		if sum := m.found[u.id()]; sum != nil {
			sum.add(&row)
			u = sum
		} else {
			m.found[u.id()] = u
		}
		if !seen[u] {
			u.Pods++
		}
		seen[u] = true
	}
}

// describe returns a use without its workload. It reports false if a broker of this version counts
// no such use.
func describe(row *telemetry.CountedUse) (*Use, bool) {
	used, err := row.Use()
	if err != nil {
		return nil, false
	}
	halves, known := used.Primitives()
	if !known {
		return nil, false
	}
	u := &Use{
		Container: row.Container, Profile: row.Profile, Operation: row.Operation, Algorithm: row.Algorithm,
		Primitives: []string{}, Verdict: judge(halves, used.Objection()), Calls: row.Calls, Since: row.Since, Last: row.Last,
	}
	for _, key := range used.Keys {
		if key.Algorithm != "" {
			u.Keys = append(u.Keys, Key{key.Algorithm, key.Bits})
		}
	}
	for _, half := range halves {
		for _, p := range half {
			if !slices.Contains(u.Primitives, p.Name) {
				u.Primitives = append(u.Primitives, p.Name)
			}
		}
	}
	return u, true
}

// add adds the calls of another broker. A broker may claim any number of calls, so the sum stops at
// the largest number.
func (u *Use) add(row *telemetry.CountedUse) {
	if u.Calls > math.MaxUint64-row.Calls {
		u.Calls = math.MaxUint64
	} else {
		u.Calls += row.Calls
	}
	if row.Since.Before(u.Since) {
		u.Since = row.Since
	}
	if row.Last.After(u.Last) {
		u.Last = row.Last
	}
}

// Verdict is the verdict of standards on a use.
type Verdict struct {
	// Strength is the security strength in bits, against computers of today.
	Strength    int         `json:"strengthBits"`
	PostQuantum PostQuantum `json:"postQuantum"`
	// DeprecatedAfter and DisallowedAfter are the years of NIST IR 8547, and of NIST's plan for
	// SHA-1. They are 0 if there is no such year. DeprecatedAfter is 0 if it would equal
	// DisallowedAfter.
	DeprecatedAfter int  `json:"deprecatedAfter,omitempty"`
	DisallowedAfter int  `json:"disallowedAfter,omitempty"`
	CNSA            CNSA `json:"cnsa"`
	// FIPS reports whether FIPS 140-3 approves the calls in the module of the brokers. FIPSReason
	// says why not.
	FIPS       bool   `json:"fips"`
	FIPSReason string `json:"fipsReason,omitempty"`
}

// PostQuantum says whether a quantum computer would break a use.
type PostQuantum string

// The values of PostQuantum.
const (
	Vulnerable PostQuantum = "vulnerable" // a quantum computer would break it
	Resistant  PostQuantum = "resistant"  // keys and signatures are made to resist it
	Unaffected PostQuantum = "unaffected" // there are no key pairs
)

// CNSA is the newest suite of the NSA that has all primitives of a use.
type CNSA string

// The values of CNSA.
const (
	CNSA2       CNSA = "2.0"
	CNSA1       CNSA = "1.0"
	OutsideCNSA CNSA = "none"
)

// judge returns the verdict on primitives. A hybrid is secure while one of its halves is. The
// suites of the NSA have no hybrids.
func judge(halves [][]algorithm.Primitive, objection string) Verdict {
	v := Verdict{FIPS: objection == "", FIPSReason: objection, CNSA: OutsideCNSA, PostQuantum: Unaffected}
	best := algorithm.Primitive{}
	suites := algorithm.InCNSA1 | algorithm.InCNSA2
	for _, half := range halves {
		weakest := half[0]
		for _, p := range half {
			weakest.Strength, weakest.Kind = min(weakest.Strength, p.Strength), min(weakest.Kind, p.Kind)
			weakest.DeprecatedAfter = min(weakest.DeprecatedAfter, p.DeprecatedAfter)
			weakest.DisallowedAfter = min(weakest.DisallowedAfter, p.DisallowedAfter)
			suites &= p.CNSA
		}
		best.Strength, best.Kind = max(best.Strength, weakest.Strength), max(best.Kind, weakest.Kind)
		best.DeprecatedAfter = max(best.DeprecatedAfter, weakest.DeprecatedAfter)
		best.DisallowedAfter = max(best.DisallowedAfter, weakest.DisallowedAfter)
	}
	v.Strength = best.Strength
	switch best.Kind {
	case algorithm.Classical:
		v.PostQuantum = Vulnerable
	case algorithm.PostQuantum:
		v.PostQuantum = Resistant
	}
	switch {
	case len(halves) > 1:
	case suites&algorithm.InCNSA2 != 0:
		v.CNSA = CNSA2
	case suites&algorithm.InCNSA1 != 0:
		v.CNSA = CNSA1
	}
	if best.DisallowedAfter != algorithm.Never {
		v.DisallowedAfter = int(best.DisallowedAfter)
	}
	if best.DeprecatedAfter < best.DisallowedAfter {
		v.DeprecatedAfter = int(best.DeprecatedAfter)
	}
	return v
}

// NIST returns the plan of NIST as text.
func (v *Verdict) NIST() string {
	switch {
	case v.DisallowedAfter == 0:
		return "no date"
	case v.DeprecatedAfter == 0:
		return fmt.Sprintf("until %d", v.DisallowedAfter)
	default:
		return fmt.Sprintf("until %d, deprecated after %d", v.DisallowedAfter, v.DeprecatedAfter)
	}
}
