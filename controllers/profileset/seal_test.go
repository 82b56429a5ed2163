// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

// ringOf returns a key ring that only the test changes.
type ringOf struct {
	signing.Ring
	err error
}

func (r *ringOf) Sign(s signed.Statement) ([]byte, error) { return r.Ring.Sign(s) }
func (r *ringOf) OnChange(func(context.Context))          {}
func (r *ringOf) ring() (signing.Ring, error)             { return r.Ring, r.err }
func (r *ringOf) audience(ns *corev1.Namespace) string    { return signing.Audience("c6a1", ns) }
func (r *ringOf) trust(ns *corev1.Namespace, n int64) (t signed.Trust) {
	return signed.Trust{Keys: r.Known(), Audience: r.audience(ns), Lowest: n}
}

type testKeys struct{ *ringOf }

func (k testKeys) Ring(context.Context) (signing.Ring, error) { return k.ring() }

func seed(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

// sealing is a sealer of one namespace with its own clock.
type sealing struct {
	*sealer
	t         *testing.T
	keys      *ringOf
	namespace *corev1.Namespace
	clock     time.Time
	highest   int64 // what brokers report
	found     *corev1.ConfigMap
}

func newSealing(t *testing.T) *sealing {
	s := &sealing{
		t: t, keys: &ringOf{Ring: signing.NewRing(seed(1))}, clock: time.UnixMilli(1_800_000_000_000),
		namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank", UID: "91f0"}},
	}
	s.begin()
	return s
}

// begin starts another operator.
func (s *sealing) begin() {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "c6a1"}}
	s.sealer = newSealer(state.NewStore(), fake.NewClientBuilder().WithObjects(system).Build(), testKeys{s.keys}, func(string) int64 { return s.highest })
	s.now = func() time.Time { return s.clock }
}

// pass makes one pass of the reconciler. It returns the revision, and whether anything was written.
func (s *sealing) pass(data string) (revision int64, wrote bool) {
	s.t.Helper()
	set, err := s.seal(s.t.Context(), s.namespace, s.found, []byte(data), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	statement, err := s.keys.trust(s.namespace, 0).Verify([]byte(data), set.signature)
	if err != nil || statement != set.Statement {
		s.t.Fatalf("signed %+v, which is %+v: %v", set.Statement, statement, err)
	}
	annotations := map[string]string{v1alpha1.MemorySignatureAnnotation: string(set.memory)}
	wrote = !isAsDesired(s.found, files([]byte(data), set.signature, nil), annotations)
	if wrote {
		s.found = &corev1.ConfigMap{}
		fill(s.found, files([]byte(data), set.signature, nil), annotations)
	}
	s.remember(s.namespace, set)
	return set.Revision, wrote
}

func (s *sealing) expect(data string, revision int64, wrote bool) {
	s.t.Helper()
	if got, did := s.pass(data); got != revision || did != wrote {
		s.t.Fatalf("revision %d, wrote: %t; want %d, %t", got, did, revision, wrote)
	}
}

const first = 1_800_000_000_000

func TestASetIsWrittenOnceForEachRevision(t *testing.T) {
	s := newSealing(t)
	s.expect("a", first, true)
	s.clock = s.clock.Add(time.Hour)
	s.expect("a", first, false) // nothing changed
	s.begin()
	s.expect("a", first, false) // the next operator does not sign again either
	s.expect("b", first+3_600_000, true)
	s.expect("a", first+3_600_001, true) // in the same millisecond
	s.clock = s.clock.Add(-24 * time.Hour)
	s.expect("b", first+3_600_002, true) // by a clock that was put back
}

func TestAPastThatComesBackGetsARevisionAboveIt(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(s *sealing, yesterday *corev1.ConfigMap)
		wrote  bool
	}{
		"yesterday's set of the same profiles":        {func(s *sealing, yesterday *corev1.ConfigMap) { s.found = yesterday }, true},
		"no set at all":                               {func(s *sealing, _ *corev1.ConfigMap) { s.found = nil }, true},
		"profiles without a signature":                {func(s *sealing, _ *corev1.ConfigMap) { delete(s.found.Data, signed.FileName) }, true},
		"a broken signature":                          {func(s *sealing, _ *corev1.ConfigMap) { s.found.Data[signed.FileName] = "{}" }, true},
		"another set under the signature":             {func(s *sealing, _ *corev1.ConfigMap) { s.found.Data[profile.FileName] = "b" }, true},
		"a file besides":                              {func(s *sealing, _ *corev1.ConfigMap) { s.found.Data["more"] = "" }, true},
		"yesterday's set to an operator that is new":  {func(s *sealing, yesterday *corev1.ConfigMap) { s.found, s.highest = yesterday, first+10; s.begin() }, true},
		"no set to an operator that is new":           {func(s *sealing, _ *corev1.ConfigMap) { s.found, s.highest = nil, first+10; s.begin() }, true},
		"nothing, and brokers that are as they were ": {func(s *sealing, _ *corev1.ConfigMap) { s.highest = first + 10 }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newSealing(t)
			s.pass("a")
			yesterday := s.found.DeepCopy()
			s.clock = time.UnixMilli(first + 10)
			s.pass("c")
			s.pass("a")
			before, _ := s.pass("a")
			s.clock = time.UnixMilli(first) // the clock makes no difference
			if before != first+11 {
				t.Fatalf("began with revision %d", before)
			}
			test.change(s, yesterday)
			revision, wrote := s.pass("a")
			if wrote != test.wrote || (wrote && sentence != "a file besides" && revision <= first+10) {
				t.Errorf("revision %d after %d, wrote: %t", revision, before, wrote)
			}
			if _, again := s.pass("a"); again {
				t.Error("wrote twice")
			}
		})
	}
}

func TestWhatBrokersReportIsBelievedWithinBounds(t *testing.T) {
	s := newSealing(t)
	s.expect("a", first, true)
	s.highest = first + 500 // as after a restored cluster
	s.expect("a", first+501, true)
	s.highest = first + 700
	s.expect("a", first+501, false) // a program imitates a broker, or etcd was restored again
	s.clock = s.clock.Add(raisePause)
	s.expect("a", first+60_000, true) // the clock is past this time now
	s.highest = s.clock.Add(reportAhead).UnixMilli() + 1
	s.clock = s.clock.Add(time.Microsecond)
	s.expect("a", first+60_000, false)
	s.highest = s.clock.Add(reportAhead).UnixMilli()
	s.expect("b", s.highest+1, true) // the set is written anyway, so there is no need to wait
}

func TestOtherKeysSignTheSameRevision(t *testing.T) {
	s := newSealing(t)
	s.expect("a", first, true)
	s.clock = s.clock.Add(time.Hour)
	s.keys.Ring = signing.NewRing(seed(2), seed(1))
	s.expect("a", first, true)
	s.expect("a", first, false)
	s.keys.Ring = signing.NewRing(seed(2))
	s.expect("a", first, true)
	s.keys.Ring = signing.NewRing(seed(3)) // the key has leaked and is gone
	s.expect("a", first+3_600_000, true)
}

func TestAnotherNamespaceOfTheNameBeginsAnew(t *testing.T) {
	s := newSealing(t)
	s.expect("a", first, true)
	s.namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank", UID: "0000"}}
	s.expect("a", first, true) // signed for it, though the file is the same
}

func TestNothingIsSignedWithoutKeys(t *testing.T) {
	s := newSealing(t)
	s.keys.err = errors.New("no keys")
	if _, err := s.seal(t.Context(), s.namespace, nil, []byte("a"), nil); err == nil || err.Error() != "no keys" {
		t.Errorf("got %v", err)
	}
	s = newSealing(t)
	s.reader = fake.NewClientBuilder().Build()
	if _, err := s.seal(t.Context(), s.namespace, nil, []byte("a"), nil); err == nil {
		t.Error("signed for a cluster that is not known")
	}
	if s.cluster != types.UID("") {
		t.Error("made up a cluster")
	}
}

func TestWhatIsRememberedHasTheRevisionOfItsSet(t *testing.T) {
	s := newSealing(t)
	memory := func(removed string) map[string]string {
		return map[string]string{v1alpha1.RemovedProfilesAnnotation: removed}
	}
	expect := func(data []byte, annotations map[string]string, revision int64) {
		t.Helper()
		set, err := s.seal(t.Context(), s.namespace, s.found, data, annotations)
		if err != nil {
			t.Fatal(err)
		}
		if set.revision != revision || data != nil && set.Revision != revision {
			t.Errorf("revision %d, of the set %d, expected %d", set.revision, set.Revision, revision)
		}
		annotations[v1alpha1.MemorySignatureAnnotation] = string(set.memory)
		s.found = &corev1.ConfigMap{}
		fill(s.found, files(data, set.signature, nil), annotations)
		s.remember(s.namespace, set)
		statement, is, err := s.memoryInPlace(t.Context(), s.namespace, s.found)
		if err != nil || !is || statement.Revision != revision {
			t.Errorf("the memory has %+v, %t, %v", statement, is, err)
		}
		if _, err := s.keys.trust(s.namespace, 0).Verify(memoryIn(s.found), set.memory); err == nil {
			t.Error("a broker takes the memory for a set")
		}
	}
	expect([]byte("a"), memory(""), first)
	expect([]byte("a"), memory(""), first)
	expect([]byte("a"), memory("b"), first+1) // the same set with another baseline
	expect(nil, memory("ab"), first+2)
	expect(nil, memory("ab"), first+2)
	expect([]byte("a"), memory("b"), first+3)

	s.begin()
	s.recorded(s.namespace, first+10) // by an earlier version of the operator
	expect([]byte("a"), memory("b"), first+11)
}
