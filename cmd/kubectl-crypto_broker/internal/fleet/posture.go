// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/inventory"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// strengths are the classes that profiles are counted in, by the security strength in bits of
// NIST SP 800-57 part 1 rev. 5, section 5.6.1. NIST asks for 112 bits, and for 128 after 2030.
var strengths = []struct {
	below int32
	what  string
	tone  Tone
}{
	{112, "below 112 bits", Bad},
	{128, "112 to 127 bits", Warn},
	{192, "128 to 191 bits", Good},
	{math.MaxInt32, "192 bits or more", Good},
}

// declared counts profiles by strength and by FIPS 140-3.
func (p *Posture) declared(objects []object) {
	byStrength := make([]uint64, len(strengths))
	byFIPS := map[string]uint64{}
	for _, o := range objects {
		if o.status.Strength != nil {
			i := slices.IndexFunc(strengths, func(class struct {
				below int32
				what  string
				tone  Tone
			}) bool {
				return *o.status.Strength < class.below
			})
			byStrength[max(i, 0)]++
		}
		byFIPS[o.status.FIPS]++
	}
	for i, class := range strengths {
		p.Strength = append(p.Strength, Count{class.what, class.tone, byStrength[i]})
	}
	p.FIPS = []Count{
		{"approved", Good, byFIPS[v1alpha1.FIPSApproved]},
		{"approved in part", Warn, byFIPS[v1alpha1.FIPSPartly]},
		{"not approved", Warn, byFIPS[v1alpha1.FIPSNotApproved]},
	}
}

// deprecated lists deprecated profiles, with the workloads that used them.
func (p *Posture) deprecated(objects []object, uses []inventory.Use) {
	var all []Deprecated
	for _, o := range objects {
		if o.spec.Deprecation == nil {
			continue
		}
		name := render.Name(o.source.Name, o.spec)
		var by []string
		for _, u := range uses {
			who := u.Namespace + " " + u.Workload
			if u.Profile == name && (o.source.Kind == downgrade.KindCluster || u.Namespace == o.source.Namespace) && !slices.Contains(by, who) {
				by = append(by, who)
			}
		}
		all = append(all, Deprecated{Object: o.named(), Namespace: o.source.Namespace, Says: deprecation(o.spec.Deprecation), UsedBy: first(by, maxServing)})
	}
	p.Deprecated = first(all, maxUses)
}

// used sums up what calls used over the workloads, the weakest first.
func (p *Posture) used(uses []inventory.Use) {
	index := map[string]int{}
	workloads := map[string]bool{}
	var all []Use
	postQuantum := map[inventory.PostQuantum]uint64{}
	for _, u := range uses {
		postQuantum[u.PostQuantum] = plus(postQuantum[u.PostQuantum], u.Calls)
		words := []string{strings.TrimSpace(u.Operation + " " + u.Algorithm)}
		for _, key := range u.Keys {
			words = append(words, key.String())
		}
		used := strings.Join(words, ", ")
		key := fmt.Sprint(used, u.Primitives, u.FIPSReason)
		i, known := index[key]
		if !known {
			i = len(all)
			index[key] = i
			all = append(all, Use{Used: used, Example: u.Namespace + " " + u.Workload, NIST: u.NIST(), Verdict: u.Verdict})
		}
		all[i].Calls = plus(all[i].Calls, u.Calls)
		if who := key + " " + u.Namespace + " " + u.Workload; !workloads[who] {
			workloads[who] = true
			all[i].Workloads++
		}
	}
	slices.SortStableFunc(all, func(a, b Use) int {
		return cmp.Or(cmp.Compare(a.Strength, b.Strength), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Used, b.Used))
	})
	p.Uses = first(all, maxUses)
	p.PostQuantum = []Count{
		{"vulnerable to quantum computers", Warn, postQuantum[inventory.Vulnerable]},
		{"made to resist quantum computers", Good, postQuantum[inventory.Resistant]},
		{"without key pairs", Good, postQuantum[inventory.Unaffected]},
	}
}

// plus adds calls. A broker may claim any number, so the sum stops at the largest number.
func plus(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
