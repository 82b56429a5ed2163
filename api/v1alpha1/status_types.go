// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ProfileStatus is what is known of a profile. The numbers count pods of the
// namespaces that the profile is for, and count a pod as updated only when its
// own broker has said that it serves the set the profile is in.
type ProfileStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// profileName is the name by which applications ask for the profile.
	// +optional
	ProfileName string `json:"profileName,omitempty"`

	// digest identifies the set of profiles of the namespace that brokers are
	// to serve: "sha256:" and 64 hexadecimal digits. It is the digest that
	// GET /profiles on a broker's status port answers. A
	// ClusterCryptoProfile, which is in a set of each of its namespaces, has
	// none.
	// +optional
	Digest string `json:"digest,omitempty"`

	// pods is the number of running pods with a broker.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pods int32 `json:"pods"`

	// updatedPods is the number of pods whose broker said that it serves the
	// set of profiles as it is now.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UpdatedPods int32 `json:"updatedPods"`

	// unverifiedPods is the number of pods whose broker could not be asked:
	// its status port is off or not reachable for the operator.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UnverifiedPods int32 `json:"unverifiedPods"`

	// conditions are Accepted, whether the profile is valid and part of what
	// brokers get, and Propagated, whether every broker serves it.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Types of conditions.
const (
	// ConditionAccepted is True when the profile is in the set of every
	// namespace it is for.
	ConditionAccepted = "Accepted"

	// ConditionPropagated is True when every broker said that it serves the
	// current set, False when one is known not to, and Unknown when a broker
	// could not be asked.
	ConditionPropagated = "Propagated"
)

// Reasons of the condition Accepted.
const (
	// ReasonValid: the profile is part of the set.
	ReasonValid = "Valid"
	// ReasonInvalid: the broker's compiler refuses the profile.
	ReasonInvalid = "Invalid"
	// ReasonConflict: another object defines the same profile name and counts.
	ReasonConflict = "Conflict"
	// ReasonTooLarge: there is no room for the profile in the namespace's set,
	// which has to fit into one ConfigMap.
	ReasonTooLarge = "TooLarge"
	// ReasonNamespaceExcluded: the namespace never gets profiles.
	ReasonNamespaceExcluded = "NamespaceExcluded"
	// ReasonNoNamespaces: the selector selects no namespace.
	ReasonNoNamespaces = "NoNamespaces"
	// ReasonNotWritten: the set could not be written to its ConfigMap.
	ReasonNotWritten = "NotWritten"
)

// Reasons of the condition Propagated.
const (
	// ReasonAllUpdated: every broker serves the current set.
	ReasonAllUpdated = "AllUpdated"
	// ReasonNoPods: no pod with a broker is running.
	ReasonNoPods = "NoPods"
	// ReasonInProgress: brokers are being brought up to date.
	ReasonInProgress = "InProgress"
	// ReasonBehind: brokers still serve an older set after every try to hurry
	// them; they follow at their kubelet's own pace.
	ReasonBehind = "Behind"
	// ReasonRefusedByBroker: a broker read the set and did not take it.
	ReasonRefusedByBroker = "RefusedByBroker"
	// ReasonUnverified: brokers could not be asked.
	ReasonUnverified = "Unverified"
	// ReasonNotAccepted: the profile is not accepted, so there is nothing to
	// propagate.
	ReasonNotAccepted = "NotAccepted"
)
