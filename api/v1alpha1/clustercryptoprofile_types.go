// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ccprof,categories=crypto-broker
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether the profile is part of what brokers get"
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.status.profileName`,description="The name applications use"
// +kubebuilder:printcolumn:name="Strength",type=integer,JSONPath=`.status.strength`,description="Security strength in bits of the weakest thing that the profile allows"
// +kubebuilder:printcolumn:name="FIPS",type=string,JSONPath=`.status.fips`,description="Whether FIPS 140-3 approves the operations of the profile"
// +kubebuilder:printcolumn:name="Namespaces",type=integer,JSONPath=`.status.namespaces`,priority=1,description="Namespaces that the profile is given to"
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.pods`,description="Pods with a broker that the profile is meant for"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedPods`,description="Pods whose broker says that it serves the current set"
// +kubebuilder:printcolumn:name="Unverified",type=integer,JSONPath=`.status.unverifiedPods`,priority=1,description="Pods whose broker could not be asked"
// +kubebuilder:printcolumn:name="Propagated",type=string,JSONPath=`.status.conditions[?(@.type=="Propagated")].status`,description="Whether every broker serves the current set"
// +kubebuilder:printcolumn:name="Degraded",type=string,JSONPath=`.status.conditions[?(@.type=="Degraded")].status`,description="Whether something is wrong that needs a person"
// +kubebuilder:printcolumn:name="Weakest",type=string,JSONPath=`.status.weakest`,priority=1,description="What limits the strength"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].reason`,priority=1,description="Why the profile is accepted or not"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec.profileName) || size(self.metadata.name) <= 64",message="metadata.name is longer than the 64 bytes a profile name may have: set spec.profileName"

// ClusterCryptoProfile is a CryptoProfile for every namespace that its
// selector selects. Where a CryptoProfile of a namespace has the same profile
// name, the ClusterCryptoProfile is the one that counts. The operations and
// their fields: kubectl explain clustercryptoprofile.spec.api
type ClusterCryptoProfile struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the policy and where it counts.
	// Example: {namespaceSelector: {matchLabels: {environment: production}},
	// api: {hashData: {hashAlg: sha3-512}}}.
	// +required
	Spec ClusterProfileSpec `json:"spec"`

	// status reports whether the policy is valid, how strong it is and which
	// brokers serve it. The operator writes it.
	// Example: {strength: 256, fips: Approved, pods: 12, updatedPods: 12}.
	// +optional
	Status ClusterProfileStatus `json:"status,omitempty"`
}

// ClusterProfileSpec is a profile and the namespaces it is for.
type ClusterProfileSpec struct {
	// namespaceSelector selects the namespaces that get the profile, by their
	// labels. Absent or empty, every namespace gets it, but for kube-system,
	// kube-node-lease and the operator's own, which never get profiles.
	// Example: {matchLabels: {environment: production}}.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	ProfileSpec `json:",inline"`
}

// ClusterProfileStatus is what is known of a ClusterCryptoProfile, summed over
// its namespaces.
type ClusterProfileStatus struct {
	// namespaces is the number of namespaces that the profile is given to.
	// Example: 7.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Namespaces int32 `json:"namespaces"`

	// perNamespace tells of the namespaces one by one, those first where most is
	// wrong, and of 50 at most. The other numbers count all of them.
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
