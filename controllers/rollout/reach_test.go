// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// hashing is a profile that hashes with an algorithm.
func hashing(algorithm string) profile.Profile {
	spec := v1alpha1.ProfileSpec{}
	spec.API.HashData = &v1alpha1.HashData{HashAlg: algorithm}
	p, err := render.Document("orders", &spec)
	if err != nil {
		panic(err)
	}
	return p
}

// serving is the state of a namespace that serves one profile.
func serving(t *testing.T, p profile.Profile) downgrade.State {
	t.Helper()
	state, err := downgrade.Read(string(downgrade.Canonical(p)), nil, render.Result{})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func TestANewProfileTakesThePlaceOfTheOldOneOnceItsRolloutIsComplete(t *testing.T) {
	old, changed := hashing("sha-256"), hashing("sha-512")
	rolled := &v1alpha1.Rollout{Steps: []v1alpha1.RolloutStep{{SetWeight: ptr.To[int32](10)}}}
	at := func(phase, digest string) *v1alpha1.RolloutStatus {
		return &v1alpha1.RolloutStatus{Phase: phase, Digest: digest, Step: 1, Below: 7}
	}
	for sentence, test := range map[string]struct {
		spec     *v1alpha1.Rollout
		status   *v1alpha1.RolloutStatus
		served   downgrade.State
		minimum  int
		withheld bool
		rolling  bool
		below    int64
	}{
		"at once without steps":                         {served: serving(t, old)},
		"not before its rollout begins":                 {spec: rolled, served: serving(t, old), rolling: true},
		"not while another one is rolled out":           {spec: rolled, status: at("Progressing", "sha256:00"), served: serving(t, old), rolling: true},
		"not after the rollout of another one":          {spec: rolled, status: at("Complete", "sha256:00"), served: serving(t, old), rolling: true},
		"not for brokers that a step has not reached":   {spec: rolled, status: at("Progressing", Digest(changed)), served: serving(t, old), rolling: true, below: 7},
		"not while it is paused":                        {spec: rolled, status: at("Paused", Digest(changed)), served: serving(t, old), rolling: true, below: 7},
		"not after a failure":                           {spec: rolled, status: at("Failed", Digest(changed)), served: serving(t, old), rolling: true, below: 7},
		"not after it went back":                        {spec: rolled, status: at("Returned", Digest(changed)), served: serving(t, old), rolling: true},
		"when its rollout is complete":                  {spec: rolled, status: at("Complete", Digest(changed)), served: serving(t, old)},
		"at once where nothing is served":               {spec: rolled, served: downgrade.State{}},
		"never where the guard withholds it":            {spec: rolled, served: serving(t, old), withheld: true},
		"at once where the old one is below a minimum":  {spec: rolled, served: serving(t, old), minimum: 192},
		"step by step where the old one is strong, too": {spec: rolled, served: serving(t, old), minimum: 112, rolling: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			object := v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
			object.Spec.Rollout, object.Status.Rollout = test.spec, test.status
			source := downgrade.Source{Kind: downgrade.KindNamespaced, Namespace: "shop", Name: "orders"}
			candidates := []downgrade.Candidate{{Profile: changed, Source: source}}
			var j downgrade.Judgement
			if test.withheld {
				j.Withheld = []downgrade.Change{{Source: source}}
			}
			kept, rolling := Of([]v1alpha1.CryptoProfile{object}, nil).Keep(test.served, candidates, j, test.minimum)
			if len(rolling) > 0 != test.rolling {
				t.Fatalf("%d changes are rolled out", len(rolling))
			}
			if len(kept) != 1 || test.rolling != test.served.Serves(kept[0].Profile) || candidates[0].Profile.API.HashData.HashAlg != "sha-512" {
				t.Errorf("kept is %+v", kept)
			}
			if test.rolling {
				if below := rolling[0].Reach(nil); below != test.below {
					t.Errorf("it has reached the places below %d, want %d", below, test.below)
				}
			}
		})
	}
}

func TestAStepReachesAllPodsOfTheNamespacesThatItOrAnEarlierOneSelects(t *testing.T) {
	staging := &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "staging"}}
	spec := &v1alpha1.Rollout{Steps: []v1alpha1.RolloutStep{{SetWeight: ptr.To[int32](0)}, {NamespaceSelector: staging}, {SetWeight: ptr.To[int32](50)}}}
	for step, want := range []int64{7, 7, profile.RolloutPlaces, profile.RolloutPlaces} {
		r := rollout{spec, &v1alpha1.RolloutStatus{Phase: "Progressing", Digest: "d", Step: int32(step), Below: 7}}
		if got := r.reach("d", map[string]string{"stage": "staging"}); got != want {
			t.Errorf("step %d reaches the places below %d, want %d", step, got, want)
		}
		if got := r.reach("d", map[string]string{"stage": "production"}); got != 7 {
			t.Errorf("step %d reaches the places below %d of another namespace, want 7", step, got)
		}
	}
}
