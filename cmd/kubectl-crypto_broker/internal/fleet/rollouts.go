// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"slices"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/rollouts"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// tones of the phases of a rollout.
var tones = map[string]Tone{
	v1alpha1.RolloutProgressing: Busy, v1alpha1.RolloutPaused: Warn, v1alpha1.RolloutFailed: Bad, v1alpha1.RolloutReturned: Bad, v1alpha1.RolloutComplete: Good,
}

// rolloutsOf returns the rollouts of profiles, the worst first. barred returns why the user
// cannot request actions on the rollout of a profile.
func rolloutsOf(objects []object, barred func(downgrade.Source) string) List[Rollout] {
	var found []object
	for _, o := range objects {
		if o.status.Rollout != nil {
			found = append(found, o)
		}
	}
	slices.SortStableFunc(found, func(a, b object) int { return worst(tones[a.status.Rollout.Phase], tones[b.status.Rollout.Phase]) })
	shown := first(found, maxRollouts)
	all := List[Rollout]{Rows: []Rollout{}, More: shown.More}
	for _, o := range shown.Rows {
		s := o.status.Rollout
		r := Rollout{
			Object: o.named(), Kind: o.source.Kind, Namespace: o.source.Namespace, Name: o.source.Name, Phase: s.Phase, Tone: cmp.Or(tones[s.Phase], Warn),
			Attempt: s.Attempt, Step: s.Step, Weight: s.Weight, NewPods: s.NewPods, OldPods: s.OldPods, Message: cut(s.Message), Choices: []Choice{},
		}
		if o.spec.Rollout != nil {
			r.Steps = len(o.spec.Rollout.Steps)
		}
		if rollouts.IsActive(s) {
			r.Choices = choices(s, barred(o.source))
		}
		all.Rows = append(all.Rows, r)
	}
	return all
}

// choices returns the actions on a rollout that a user can request.
func choices(s *v1alpha1.RolloutStatus, barred string) []Choice {
	if barred != "" {
		barred = sentence(barred)
	}
	promote, abort := barred, barred
	if s.Phase == v1alpha1.RolloutReturned {
		promote = cmp.Or(promote, "The rollout went back to the old profile.")
		abort = cmp.Or(abort, "The rollout went back to the old profile.")
	}
	return []Choice{{rollouts.Promote, promote}, {rollouts.PromoteFull, barred}, {rollouts.Abort, abort}}
}
