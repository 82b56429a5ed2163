// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
)

// A rollout fails when minFailed calls or more failed on the new side, and the share of
// failed calls there is above maxFailedShare and more than failedFactor times the share on
// the old side.
const (
	minFailed      = 3
	maxFailedShare = 0.01
	failedFactor   = 2
)

// attempt is the rollout of one change of a profile, with its current state.
type attempt struct {
	spec *v1alpha1.Rollout
	// digest identifies the new profile.
	digest string
	asked  request
	// places are the places of the pods outside of selected namespaces, sorted.
	places []int64
	// seen has the reports of the brokers.
	seen distribute.Sides
	// noRoom is the first namespace whose set has no room for both profiles, or empty.
	noRoom string
}

// next returns the next status of the rollout.
func (a attempt) next(before *v1alpha1.RolloutStatus, now time.Time) v1alpha1.RolloutStatus {
	if before == nil || before.Digest != a.digest {
		return a.begin(v1alpha1.RolloutStatus{Digest: a.digest, Attempt: attemptOf(a.digest, now)}, 1, now)
	}
	status := *before
	status.NewPods, status.OldPods = int32(a.seen.New.Brokers), int32(a.seen.Old.Brokers)
	status.Step = max(1, min(status.Step, int32(len(a.spec.Steps)))) // somebody may have taken steps away
	switch {
	case status.Phase == v1alpha1.RolloutComplete:
		return *before
	case a.asked.all:
		return complete(status, "Somebody promoted it.")
	case a.asked.back && status.Phase != v1alpha1.RolloutReturned:
		return goBack(status, "Somebody asked for it.")
	case status.Phase == v1alpha1.RolloutReturned:
		return *before
	case a.asked.promoted >= status.Step:
		return a.begin(status, status.Step+1, now)
	case status.Phase == v1alpha1.RolloutFailed:
		return a.fail(status, status.Message)
	}
	if failure := a.failure(); failure != "" {
		return a.fail(status, failure)
	}
	return a.advance(status, now)
}

// attemptOf returns the name of a rollout that begins now. It differs from the name of a later
// rollout of the same change, so requests for this rollout have no effect on that one.
func attemptOf(digest string, now time.Time) string {
	hash := strings.TrimPrefix(digest, "sha256:")
	return fmt.Sprintf("%s-%d", hash[:min(8, len(hash))], now.Unix())
}

// begin returns the status at the beginning of a step. After the last step the rollout is complete.
func (a attempt) begin(status v1alpha1.RolloutStatus, step int32, now time.Time) v1alpha1.RolloutStatus {
	if int(step) > len(a.spec.Steps) {
		return complete(status, "")
	}
	status.Phase, status.Step, status.Since, status.Confirmed = v1alpha1.RolloutProgressing, step, metav1.NewTime(now), nil
	status.Weight = weightAt(a.spec, step)
	status.Below = max(status.Below, below(a.places, status.Weight))
	status.Message = fmt.Sprintf("Step %d of %d: brings the new profile to %s.", step, len(a.spec.Steps), status.Reach(a.spec))
	return status
}

// advance continues a step, or begins the next one. It waits while brokers that the step has
// reached have not been asked, because they may report failures. That happens if this process has
// begun in the middle of a rollout.
func (a attempt) advance(status v1alpha1.RolloutStatus, now time.Time) v1alpha1.RolloutStatus {
	if status.Confirmed == nil {
		if a.seen.Expected > a.seen.New.Brokers {
			status.Message = fmt.Sprintf("Step %d of %d: %d of %d pods serve the new profile.", status.Step, len(a.spec.Steps), a.seen.New.Brokers, a.seen.Expected)
			return status
		}
		confirmed := metav1.NewTime(now)
		status.Confirmed = &confirmed
	}
	if a.seen.Unasked > 0 {
		return status
	}
	pause := a.spec.Steps[status.Step-1].Pause
	if pause == nil {
		return a.begin(status, status.Step+1, now)
	}
	if pause.Duration == nil {
		status.Phase, status.Message = v1alpha1.RolloutPaused, fmt.Sprintf("Step %d of %d: waits until somebody promotes it.", status.Step, len(a.spec.Steps))
		return status
	}
	until := status.Confirmed.Add(pause.Duration.Duration)
	if now.Before(until) {
		status.Phase = v1alpha1.RolloutProgressing // the phase was Paused if the pause had no duration before
		status.Message = fmt.Sprintf("Step %d of %d: waits until %s.", status.Step, len(a.spec.Steps), until.UTC().Format(time.RFC3339))
		return status
	}
	return a.begin(status, status.Step+1, now)
}

func complete(status v1alpha1.RolloutStatus, why string) v1alpha1.RolloutStatus {
	status.Phase, status.Weight, status.Below, status.Message = v1alpha1.RolloutComplete, 100, profile.RolloutPlaces, why
	status.NewPods, status.OldPods = 0, 0
	return status
}

func goBack(status v1alpha1.RolloutStatus, why string) v1alpha1.RolloutStatus {
	status.Phase, status.Weight, status.Below, status.Message = v1alpha1.RolloutReturned, 0, 0, why
	status.NewPods, status.OldPods = 0, 0
	return status
}

func (a attempt) fail(status v1alpha1.RolloutStatus, failure string) v1alpha1.RolloutStatus {
	if a.spec.OnFailure == v1alpha1.OnFailureReturn {
		return goBack(status, failure)
	}
	status.Phase, status.Message = v1alpha1.RolloutFailed, failure
	return status
}

// failure returns the problem of the new profile, or an empty text.
func (a attempt) failure() string {
	now, old := a.seen.New, a.seen.Old
	switch n := len(a.seen.Refusing); {
	case a.noRoom != "":
		return fmt.Sprintf("The set of namespace %s has no room for both profiles, so the new one reaches nobody there. It takes their place in all pods if you promote the rollout with --full.", a.noRoom)
	case n == 1:
		return fmt.Sprintf("The broker in pod %s refuses it.", a.seen.Refusing[0])
	case n > 1:
		return fmt.Sprintf("%d brokers refuse it, the first in pod %s.", n, slices.Min(a.seen.Refusing))
	case now.Failed >= minFailed && share(now) > maxFailedShare && share(now) > failedFactor*share(old):
		return fmt.Sprintf("%d of %d calls failed with the new profile, %d of %d with the old one.", now.Failed, now.Calls, old.Failed, old.Calls)
	}
	return ""
}

// share returns the share of failed calls. It is 0 without calls.
func share(side distribute.Side) float64 {
	return float64(side.Failed) / float64(max(side.Calls, 1))
}

// weightAt returns the weight of a step: its own weight, or the weight of an earlier step.
func weightAt(spec *v1alpha1.Rollout, step int32) int32 {
	weight := int32(0)
	for _, s := range spec.Steps[:step] {
		if s.SetWeight != nil {
			weight = max(weight, *s.SetWeight)
		}
	}
	return weight
}

// below returns the first place that is not reached if a percentage of these places is reached,
// rounded up.
func below(places []int64, weight int32) int64 {
	switch n := (len(places)*int(weight) + 99) / 100; {
	case weight == 100:
		return profile.RolloutPlaces
	case len(places) == 0:
		return profile.RolloutPlaces / 100 * int64(weight)
	case n == 0:
		return 0
	default:
		return places[n-1] + 1
	}
}
