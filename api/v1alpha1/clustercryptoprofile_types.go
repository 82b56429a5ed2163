// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ccprof,categories=crypto-broker
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the profile is accepted, nothing is wrong and every broker serves it"
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether the profile is part of the set for brokers"
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.status.profileName`,description="The name applications use"
// +kubebuilder:printcolumn:name="Strength",type=integer,JSONPath=`.status.strength`,description="Security strength in bits of the weakest use that the profile allows"
// +kubebuilder:printcolumn:name="FIPS",type=string,JSONPath=`.status.fips`,description="Whether FIPS 140-3 approves the operations of the profile"
// +kubebuilder:printcolumn:name="Namespaces",type=integer,JSONPath=`.status.namespaces`,priority=1,description="Namespaces that the profile is given to"
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

// ClusterCryptoProfile is a CryptoProfile for every namespace that its
// selector selects. If a CryptoProfile of a namespace has the same profile
// name, only the ClusterCryptoProfile counts. The operations and their
// fields: kubectl explain clustercryptoprofile.spec.api
type ClusterCryptoProfile struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the policy, and the namespaces that it is for.
	// Example: {namespaceSelector: {matchLabels: {environment: production}},
	// api: {hashData: {hashAlg: sha3-512}}}.
	// +required
	Spec ClusterProfileSpec `json:"spec"`

	// status says whether the policy is valid, how strong it is and how many
	// brokers serve it. The operator writes it.
	// Example: {strength: 256, fips: Approved, pods: 12, updatedPods: 12}.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClusterProfileStatus `json:"status,omitempty"`
}

// ClusterProfileSpec is a profile and the namespaces that it is for.
type ClusterProfileSpec struct {
	// namespaceSelector selects the namespaces that get the profile, by their
	// labels. If it is absent or empty, every namespace gets the profile, except
	// for kube-system, kube-node-lease and the operator's own namespace, which
	// never get profiles.
	// Example: {matchLabels: {environment: production}}.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	ProfileSpec `json:",inline"`
}

// ClusterProfileStatus is the status of a ClusterCryptoProfile. Its numbers are
// the sums of all namespaces.
type ClusterProfileStatus struct {
	// namespaces is the number of namespaces that the profile is given to.
	// Example: 7.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Namespaces int32 `json:"namespaces"`

	// perNamespace has the status in each namespace, the worst first, of at most
	// 50 namespaces. The other numbers count all namespaces.
	// Example: [{name: shop, state: Behind, pods: 4, updatedPods: 3,
	// unverifiedPods: 0}].
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	PerNamespace []NamespaceStatus `json:"perNamespace,omitempty"`

	ProfileStatus `json:",inline"`
}

// +kubebuilder:object:root=true

// ClusterCryptoProfileList is a list of ClusterCryptoProfiles.
type ClusterCryptoProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterCryptoProfile `json:"items"`
}
