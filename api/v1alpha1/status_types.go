// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ProfileStatus is the status of a profile. The numbers count pods of the
// namespaces that the profile is for. A pod counts as updated only after its
// own broker has confirmed the set with the profile.
type ProfileStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// It is -1 until the operator has written the first status.
	// Example: 3.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// profileName is the name by which applications ask for the profile.
	// Example: FIPS-140-3-256bit.
	// +optional
	ProfileName string `json:"profileName,omitempty"`

	// strength is the security strength in bits of the weakest use that the
	// profile allows (NIST SP 800-57 part 1, section 5.6.1). An attack takes
	// about two to the power of strength steps. NIST asks for 128 or more after
	// 2030. It is absent while the profile is invalid.
	// Example: 128.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Strength *int32 `json:"strength,omitempty"`

	// weakest names what limits the strength.
	// Example: RSA keys of 3072 bits.
	// +optional
	Weakest string `json:"weakest,omitempty"`

	// fips says whether the operations of the profile are approved services of
	// FIPS 140-3: Approved is all of them, Partly is some, NotApproved is none.
	// operations has the reasons. It is absent while the profile is invalid.
	// +optional
	// +kubebuilder:validation:Enum=Approved;Partly;NotApproved
	FIPS string `json:"fips,omitempty"`

	// operations has the strength and the FIPS verdict of each operation that
	// the profile offers.
	// Example: [{name: HashData, algorithm: sha3-512, strength: 256,
	// weakest: SHA3-512, fips: Approved}].
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Operations []OperationStatus `json:"operations,omitempty"`

	// digest identifies the set of profiles of the namespace that brokers
	// should serve: "sha256:" and 64 hexadecimal digits. GET /profiles on the
	// status port of a broker returns the same digest. It may be out of date,
	// because a change of another profile changes the set but not this status.
	// A ClusterCryptoProfile has a digest for each namespace in perNamespace.
	// Example:
	// sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.
	// +optional
	Digest string `json:"digest,omitempty"`

	// pods is the number of running pods with a broker.
	// Example: 12.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pods int32 `json:"pods"`

	// updatedPods is the number of pods whose broker has confirmed that it
	// serves the current set of profiles.
	// Example: 12.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UpdatedPods int32 `json:"updatedPods"`

	// unverifiedPods is the number of pods whose broker could not be asked:
	// its status port is off or not reachable for the operator.
	// Example: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UnverifiedPods int32 `json:"unverifiedPods"`

	// rollout says how far the rollout of the last change is. It is there if
	// spec.rollout is.
	// Example: {phase: Progressing, step: 1, weight: 10}.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// conditions are Ready (whether the profile is accepted, nothing is wrong,
	// and every broker serves the set), Accepted (whether the profile is valid
	// and part of the set), Propagated (whether every broker serves the set),
	// Degraded (whether something is wrong that a person has to correct, as the
	// message says), DowngradeWithheld (whether the profile is not served
	// because it is weaker than the profile that was served) and, only while it
	// is True, Stalled (the profile is not accepted until a person acts).
	// Example: [{type: Ready, status: "False", reason: BrokersTooOld}].
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// OperationStatus is the strength and the FIPS verdict of one operation.
type OperationStatus struct {
	// name is the name of the operation, as clients call it.
	// Example: SignData.
	// +required
	Name string `json:"name"`

	// algorithm is the algorithm of the operation, as replies name it.
	// Example: ecdsa-with-sha-256.
	// +optional
	Algorithm string `json:"algorithm,omitempty"`

	// strength is the security strength of the operation in bits.
	// Example: 128.
	// +required
	// +kubebuilder:validation:Minimum=0
	Strength int32 `json:"strength"`

	// weakest names what limits the strength.
	// Example: ECDSA keys of 256 bits.
	// +optional
	Weakest string `json:"weakest,omitempty"`

	// fips says whether the operation is an approved service of FIPS 140-3.
	// +required
	// +kubebuilder:validation:Enum=Approved;NotApproved
	FIPS string `json:"fips"`

	// fipsReason says why the operation is not approved.
	// Example: SignAlg has ml-dsa-65, which the validated module does not have.
	// +optional
	FIPSReason string `json:"fipsReason,omitempty"`
}

// MaxPerNamespace is the maximum number of namespaces that the status of a ClusterCryptoProfile
// lists.
const MaxPerNamespace = 50

// NamespaceStatus is the status of a ClusterCryptoProfile in one namespace.
type NamespaceStatus struct {
	// name is the name of the namespace.
	// Example: shop.
	// +required
	Name string `json:"name"`

	// state is a reason of the condition Propagated if the profile is part of
	// the namespace's set, and otherwise a reason of the condition Accepted.
	// Example: AllUpdated.
	// +required
	State string `json:"state"`

	// digest identifies the namespace's set, as in the status of a CryptoProfile.
	// Example:
	// sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.
	// +optional
	Digest string `json:"digest,omitempty"`

	// pods is the number of running pods with a broker in the namespace.
	// Example: 4.
	// +required
	// +kubebuilder:validation:Minimum=0
	Pods int32 `json:"pods"`

	// updatedPods is the number of these pods whose broker serves the set.
	// Example: 3.
	// +required
	// +kubebuilder:validation:Minimum=0
	UpdatedPods int32 `json:"updatedPods"`

	// unverifiedPods is the number of these pods whose broker could not be
	// asked.
	// Example: 1.
	// +required
	// +kubebuilder:validation:Minimum=0
	UnverifiedPods int32 `json:"unverifiedPods"`
}

// Values of the fields named fips.
const (
	// FIPSApproved means that FIPS 140-3 approves all operations.
	FIPSApproved = "Approved"
	// FIPSPartly means that FIPS 140-3 approves some of the operations.
	FIPSPartly = "Partly"
	// FIPSNotApproved means that FIPS 140-3 approves no operation.
	FIPSNotApproved = "NotApproved"
)

// Types of conditions.
const (
	// ConditionReady is True when Accepted and Propagated are True and Degraded
	// is False. It is Unknown when only Propagated is not True and is Unknown.
	// It has the reason and the message of the condition that decides.
	ConditionReady = "Ready"

	// ConditionStalled is True while the profile is not accepted and a person
	// has to act. Otherwise the profile does not have the condition.
	ConditionStalled = "Stalled"

	// ConditionAccepted is True when the profile is in the set of every
	// namespace that it is for.
	ConditionAccepted = "Accepted"

	// ConditionPropagated is True when every broker has confirmed the current
	// set. It is False when a broker is known to serve another set, and Unknown
	// when a broker could not be asked.
	ConditionPropagated = "Propagated"

	// ConditionDegraded is True when something is wrong with the profile, or
	// with the brokers that should serve it, that a person has to correct.
	ConditionDegraded = "Degraded"

	// ConditionDowngradeWithheld is True while the profile is not served because
	// it is weaker than the profile that was served. A profile that was never
	// withheld does not have the condition.
	ConditionDowngradeWithheld = "DowngradeWithheld"
)

// Reasons of the condition Accepted.
const (
	// ReasonValid means that the profile is part of the set.
	ReasonValid = "Valid"
	// ReasonInvalid means that the compiler of the broker refuses the profile.
	ReasonInvalid = "Invalid"
	// ReasonConflict means that another object with the same profile name counts.
	ReasonConflict = "Conflict"
	// ReasonTooLarge means that there is no room for the profile in the
	// namespace's set, which has to fit into one ConfigMap.
	ReasonTooLarge = "TooLarge"
	// ReasonNamespaceExcluded means that the namespace never gets profiles.
	ReasonNamespaceExcluded = "NamespaceExcluded"
	// ReasonNoNamespaces means that the selector selects no namespace.
	ReasonNoNamespaces = "NoNamespaces"
	// ReasonNotWritten means that the set could not be written to its ConfigMap.
	ReasonNotWritten = "NotWritten"
	// ReasonDowngradeWithheld means that the profile is weaker than the profile
	// of the same name that was served before, and nobody has allowed that.
	ReasonDowngradeWithheld = "DowngradeWithheld"
	// ReasonBelowMinimumStrength means that the profile is weaker than the
	// minimum strength of the cluster.
	ReasonBelowMinimumStrength = "BelowMinimumStrength"
	// ReasonDeleting means that the object is being deleted and has finalizers.
	ReasonDeleting = "Deleting"
)

// Reasons of the condition DowngradeWithheld.
const (
	// ReasonWeaker means that a weaker profile is withheld.
	ReasonWeaker = "Weaker"
	// ReasonNothingWithheld means that no profile is withheld any more: it is
	// served, its change was undone, or the guard does not compare it any more.
	ReasonNothingWithheld = "NothingWithheld"
)

// Reasons of the condition Propagated.
const (
	// ReasonAllUpdated means that every broker serves the current set.
	ReasonAllUpdated = "AllUpdated"
	// ReasonNoPods means that no pod with a broker is running.
	ReasonNoPods = "NoPods"
	// ReasonInProgress means that the propagation to brokers is going on.
	ReasonInProgress = "InProgress"
	// ReasonBehind means that brokers still serve an older set although the
	// operator has tried to make their kubelets update the pods at once. They
	// get the set when their kubelets update the pods by themselves.
	ReasonBehind = "Behind"
	// ReasonRefusedByBroker means that a broker has read the set and refused it.
	ReasonRefusedByBroker = "RefusedByBroker"
	// ReasonUnverified means that brokers could not be asked.
	ReasonUnverified = "Unverified"
	// ReasonNotAccepted means that the profile is not accepted, so there is
	// nothing to propagate.
	ReasonNotAccepted = "NotAccepted"
)

// Reasons of the condition Degraded, the worst first. ReasonNotAccepted and
// ReasonNotWritten are among them.
const (
	// ReasonProfilesHeld means that the namespace's set is not changed, because
	// profiles in it were deleted together with their resource definition.
	ReasonProfilesHeld = "ProfilesHeld"
	// ReasonBrokersTooOld means that brokers refuse the set or some of its
	// profiles, and another version of the operator has injected them, or the
	// same version with other settings.
	ReasonBrokersTooOld = "BrokersTooOld"
	// ReasonSetRefused means that brokers of the current version and settings
	// refuse the set.
	ReasonSetRefused = "SetRefused"
	// ReasonBrokersWithoutSet means that brokers have no set at all.
	ReasonBrokersWithoutSet = "BrokersWithoutSet"
	// ReasonTriesExhausted means that brokers serve an older set although the
	// operator has tried to make their kubelets update the pods at once.
	ReasonTriesExhausted = "TriesExhausted"
	// ReasonProfilesRefused means that brokers of the current version and
	// settings serve the set without some of its profiles.
	ReasonProfilesRefused = "ProfilesRefused"
	// ReasonAsExpected means that nothing is wrong.
	ReasonAsExpected = "AsExpected"
)
