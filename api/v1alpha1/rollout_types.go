// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rollout brings a change of a profile to some pods first. While it lasts, each
// broker serves either the new profile or the one that was served before.
type Rollout struct {
	// steps are taken in their order. After the last one, all pods get the new
	// profile. A later step reaches at least as many pods as an earlier one.
	// Example: [{setWeight: 10, pause: {duration: 10m}}, {setWeight: 50}].
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Steps []RolloutStep `json:"steps"`

	// onFailure is what happens when brokers refuse the new profile, or when
	// calls fail more often with it: with Pause, the default, the rollout stops
	// where it is. With Return, all pods get the old profile again.
	// Example: Return.
	// +optional
	// +kubebuilder:validation:Enum=Pause;Return
	OnFailure string `json:"onFailure,omitempty"`
}

// RolloutStep is a part of the pods, and how long it stays so.
// +kubebuilder:validation:XValidation:rule="has(self.setWeight) || has(self.namespaceSelector)",message="a step has setWeight, namespaceSelector or both"
type RolloutStep struct {
	// setWeight is the percentage of the pods outside of selected namespaces that
	// get the new profile. If it is absent, the percentage of the step before
	// holds.
	// Example: 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SetWeight *int32 `json:"setWeight,omitempty"`

	// namespaceSelector selects namespaces, by their labels, in which all pods
	// get the new profile from this step on. It is for ClusterCryptoProfiles.
	// Example: {matchLabels: {environment: staging}}.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// pause is how long the rollout waits once all pods of the step serve the
	// new profile. If it is absent, the next step follows at once.
	// Example: {duration: 10m}.
	// +optional
	Pause *RolloutPause `json:"pause,omitempty"`
}

// RolloutPause is how long a rollout waits.
type RolloutPause struct {
	// duration is the time. If it is absent, the rollout waits until somebody
	// promotes it.
	// Example: 10m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h))+$')",message="expected a duration in h, m, s and ms such as 90s, 10m or 24h, each below 100000; there are no days"
	Duration *metav1.Duration `json:"duration,omitempty"`
}

// Values of the field onFailure.
const (
	OnFailurePause  = "Pause"
	OnFailureReturn = "Return"
)

// RolloutStatus is how far a rollout is.
type RolloutStatus struct {
	// phase is Progressing, Paused (until somebody promotes it), Failed, Returned
	// (all pods have the old profile again) or Complete.
	// Example: Progressing.
	// +required
	// +kubebuilder:validation:Enum=Progressing;Paused;Failed;Returned;Complete
	Phase string `json:"phase"`

	// digest identifies the new profile.
	// Example:
	// sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.
	// +required
	Digest string `json:"digest"`

	// attempt names this rollout: the begin of the digest, and when it began in
	// seconds since 1970. The annotation cryptobroker.io/promote has it.
	// Example: 9f86d081-1795420800.
	// +optional
	Attempt string `json:"attempt,omitempty"`

	// step is the number of the step that is taken, from 1.
	// Example: 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Step int32 `json:"step"`

	// weight is the percentage of the pods that get the new profile.
	// Example: 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Weight int32 `json:"weight"`

	// below is the first place that the rollout has not reached, of 2^48. Each
	// pod has a place. It is chosen so that weight is right for the pods that
	// ran when the step began.
	// Example: 28147497671065.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Below int64 `json:"below"`

	// since is when the step began.
	// Example: "2026-11-23T10:00:00Z".
	// +optional
	Since metav1.Time `json:"since,omitempty"`

	// confirmed is when all pods of the step served the new profile.
	// Example: "2026-11-23T10:00:04Z".
	// +optional
	Confirmed *metav1.Time `json:"confirmed,omitempty"`

	// newPods is the number of pods whose brokers said that they serve the new
	// profile, 0 once the rollout is over.
	// Example: 2.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NewPods int32 `json:"newPods"`

	// oldPods is the number of pods whose brokers said that they serve the old
	// profile, 0 once the rollout is over.
	// Example: 18.
	// +optional
	// +kubebuilder:validation:Minimum=0
	OldPods int32 `json:"oldPods"`

	// message says what the rollout waits for, or why it ended.
	// Example: Waits until 2026-11-23T10:10:04Z.
	// +optional
	Message string `json:"message,omitempty"`
}

// Phases of a rollout.
const (
	// RolloutProgressing takes its steps.
	RolloutProgressing = "Progressing"
	// RolloutPaused waits until somebody promotes it.
	RolloutPaused = "Paused"
	// RolloutFailed stopped because of a failure, and stays as it is.
	RolloutFailed = "Failed"
	// RolloutReturned stopped because of a failure, and all pods have the old
	// profile.
	RolloutReturned = "Returned"
	// RolloutComplete has brought the new profile to all pods.
	RolloutComplete = "Complete"
)

// ReasonRolloutProgressing is the reason of the condition Propagated, and of events,
// while the rollout of a profile takes its steps. In the other phases it is what
// RolloutStatus.Reason returns.
const ReasonRolloutProgressing = "Rollout" + RolloutProgressing

// HasFailed reports whether the rollout stopped because of a failure.
func (s *RolloutStatus) HasFailed() bool {
	return s.Phase == RolloutFailed || s.Phase == RolloutReturned
}

// Reason returns the phase as the reason of conditions and events, such as
// "RolloutPaused".
func (s *RolloutStatus) Reason() string { return "Rollout" + s.Phase }

// Reach returns in words which pods have been reached at this status of a rollout.
func (s *RolloutStatus) Reach(of *Rollout) string {
	selects := false
	for i := range of.Steps[:min(int(s.Step), len(of.Steps))] {
		selects = selects || of.Steps[i].NamespaceSelector != nil
	}
	switch {
	case !selects || s.Weight == 100:
		return fmt.Sprintf("%d %% of the pods", s.Weight)
	case s.Weight == 0:
		return "all pods of the selected namespaces"
	default:
		return fmt.Sprintf("all pods of the selected namespaces and %d %% of the others", s.Weight)
	}
}
