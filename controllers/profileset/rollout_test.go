// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/state"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// shop is a namespace with one profile, whose changes are rolled out, and a guard.
type shop struct {
	*guard
	namespace *corev1.Namespace
	profile   v1alpha1.CryptoProfile
}

func newShop(spec v1alpha1.ProfileSpec) *shop {
	s := &shop{namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1"}}}
	s.guard = newGuard(state.NewStore(), 0, func(context.Context, sources) (downgrade.State, error) { return downgrade.State{}, nil })
	s.profile = v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "shop"}, Spec: spec}
	s.profile.Spec.Rollout = &v1alpha1.Rollout{Steps: []v1alpha1.RolloutStep{{SetWeight: ptr.To[int32](10)}}}
	return s
}

// judge returns the new set. The namespace serves it from now on.
func (s *shop) judge(t *testing.T) guarded {
	t.Helper()
	own := []v1alpha1.CryptoProfile{s.profile}
	set, err := s.guard.judge(t.Context(), sources{namespace: s.namespace, namespaced: own, rendered: render.Effective(own, nil, s.namespace)})
	if err != nil || set.Refusal != "" {
		t.Fatal(set.Refusal, err)
	}
	s.namespaces.Update(s.namespace, func(known *state.Namespace) { known.Served = &set.state })
	return set
}

// change changes the profile, and returns its verdict.
func (s *shop) change(t *testing.T, spec v1alpha1.ProfileSpec) render.Verdict {
	t.Helper()
	spec.Rollout = s.profile.Spec.Rollout
	s.profile.Spec = spec
	return s.judge(t).Namespaced["orders"]
}

// setReached sets the state of the rollout of the change with a digest: its phase, and the places that it has reached.
func (s *shop) setReached(phase, digest string, below int64) {
	s.profile.Status.Rollout = &v1alpha1.RolloutStatus{Phase: phase, Digest: digest, Step: 1, Below: below}
}

func TestTheSetOfARolloutHasBothProfilesAndTheOldOneStaysTheBaseline(t *testing.T) {
	s := newShop(sized("sha-256", 10))
	s.judge(t)
	verdict := s.change(t, sized("sha-512", 10))
	if !verdict.Accepted || verdict.Rolling == "" {
		t.Fatalf("found %+v", verdict)
	}
	expect := func(head string, algorithms ...string) {
		t.Helper()
		set := s.judge(t)
		text := string(set.Data)
		for _, algorithm := range algorithms {
			at := strings.Index(text, "HashAlg: "+algorithm)
			if at < 0 {
				t.Fatalf("expected %q in the set, found\n%s", algorithms, set.Data)
			}
			text = text[at:]
		}
		if !strings.HasPrefix(string(set.Data), head) || strings.Count(string(set.Data), "HashAlg") != len(algorithms) || len(set.Names) != 1 {
			t.Errorf("expected %q and the name orders, found %q and\n%s", algorithms, set.Names, set.Data)
		}
		if len(algorithms) == 2 || algorithms[0] == "sha-256" {
			if old, _ := set.state.ServedAs("orders"); old.API.HashData.HashAlg != "sha-256" {
				t.Errorf("the baseline is %s", old.API.HashData.HashAlg)
			}
		}
	}
	expect("- Name: ", "sha-256")
	s.setReached(v1alpha1.RolloutProgressing, verdict.Rolling, 7)
	expect("FormatVersion: 2\n", "sha-256", "sha-512")
	s.setReached(v1alpha1.RolloutProgressing, "sha256:another", 7)
	expect("- Name: ", "sha-256")
	s.setReached(v1alpha1.RolloutReturned, verdict.Rolling, 0)
	expect("- Name: ", "sha-256")
	s.setReached(v1alpha1.RolloutComplete, verdict.Rolling, profile.RolloutPlaces)
	expect("- Name: ", "sha-512")
	if verdict := s.judge(t).Namespaced["orders"]; verdict.Rolling != "" {
		t.Errorf("found %+v after the rollout", verdict)
	}
}

func TestAProfileThatWasRolledOutToSomeIsGoneAtOnceWhenItIsDeleted(t *testing.T) {
	s := newShop(sized("sha-256", 10))
	s.judge(t)
	s.setReached(v1alpha1.RolloutProgressing, s.change(t, sized("sha-512", 10)).Rolling, 7)
	s.judge(t)
	set, err := s.guard.judge(t.Context(), sources{namespace: s.namespace, rendered: render.Effective(nil, nil, s.namespace)})
	if err != nil || len(set.Names) != 0 || strings.Contains(string(set.Data), "orders") {
		t.Errorf("the set has %q, %v", set.Data, err)
	}
}

func TestASetWithoutRoomForBothProfilesHasTheOldOne(t *testing.T) {
	s := newShop(sized("sha-256", render.MaxSetSize*2/3))
	s.judge(t)
	verdict := s.change(t, sized("sha-512", render.MaxSetSize*2/3))
	if verdict.NoRoom {
		t.Error("there is no room before the rollout has reached anybody")
	}
	s.setReached(v1alpha1.RolloutProgressing, verdict.Rolling, 7)
	set := s.judge(t)
	if verdict := set.Namespaced["orders"]; !verdict.NoRoom || !strings.Contains(string(set.Data), "sha-256") || strings.Contains(string(set.Data), "sha-512") {
		t.Errorf("found %+v and a set of %d bytes", verdict, len(set.Data))
	}
	s.setReached(v1alpha1.RolloutComplete, verdict.Rolling, profile.RolloutPlaces)
	if set := s.judge(t); !strings.Contains(string(set.Data), "sha-512") {
		t.Error("the new profile is not served after the rollout")
	}
}
