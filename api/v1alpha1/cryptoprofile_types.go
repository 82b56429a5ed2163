// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=cprof,categories=crypto-broker
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the profile is accepted, nothing is wrong and every broker serves it"
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether the profile is part of the set for brokers"
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.status.profileName`,description="The name applications use"
// +kubebuilder:printcolumn:name="Strength",type=integer,JSONPath=`.status.strength`,description="Security strength in bits of the weakest use that the profile allows"
// +kubebuilder:printcolumn:name="FIPS",type=string,JSONPath=`.status.fips`,description="Whether FIPS 140-3 approves the operations of the profile"
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.pods`,description="Pods with a broker that the profile is for"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedPods`,description="Pods whose broker has confirmed that it serves the current set"
// +kubebuilder:printcolumn:name="Unverified",type=integer,JSONPath=`.status.unverifiedPods`,priority=1,description="Pods whose broker could not be asked"
// +kubebuilder:printcolumn:name="Propagated",type=string,JSONPath=`.status.conditions[?(@.type=="Propagated")].status`,description="Whether every broker serves the current set"
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.status.rollout.phase`,description="How far the rollout of the last change is"
// +kubebuilder:printcolumn:name="Weight",type=integer,JSONPath=`.status.rollout.weight`,priority=1,description="Percentage of the pods that get the new profile of the rollout"
// +kubebuilder:printcolumn:name="Degraded",type=string,JSONPath=`.status.conditions[?(@.type=="Degraded")].status`,description="Whether something is wrong that a person has to correct"
// +kubebuilder:printcolumn:name="Weakest",type=string,JSONPath=`.status.weakest`,priority=1,description="What limits the strength"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].reason`,priority=1,description="Why the profile is accepted or not"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec.profileName) || size(self.metadata.name) <= 64",message="metadata.name is longer than the 64 bytes a profile name may have: set spec.profileName"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.rollout) || self.spec.rollout.steps.all(s, !has(s.namespaceSelector))",message="a step of spec.rollout has namespaceSelector, which is for a ClusterCryptoProfile: a CryptoProfile has one namespace"

// CryptoProfile is a policy for the cryptography of the applications in its
// namespace: the operations with their algorithms, key sizes and limits.
// Applications name the profile in each call. The broker in their pod decides
// everything else by the profile. A change reaches running pods within about
// a second, without a restart. The operations and their fields:
// kubectl explain cryptoprofile.spec.api
type CryptoProfile struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the policy.
	// Example: {api: {hashData: {hashAlg: sha3-512}}}.
	// +required
	Spec ProfileSpec `json:"spec"`

	// status says whether the policy is valid, how strong it is and how many
	// brokers serve it. The operator writes it.
	// Example: {strength: 256, fips: Approved, pods: 12, updatedPods: 12}.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ProfileStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// CryptoProfileList is a list of CryptoProfiles.
type CryptoProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CryptoProfile `json:"items"`
}
