// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=kapolicy,path=keyaccesspolicies,categories=crypto-broker
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether all key access services use the policy as it is"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the policy is ready or not"
// +kubebuilder:printcolumn:name="Services",type=integer,JSONPath=`.status.services`,description="How many key access services have reported the policy"
// +kubebuilder:printcolumn:name="Applies To",type=string,JSONPath=`.spec.appliesTo`,priority=1,description="Which data keys the policy is for; nothing for all"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// KeyAccessPolicy says in CEL (Common Expression Language), or in Rego where that
// is permitted, who may have data keys from the key access service of its
// namespace. A data key is released if no rule under deny is true, and if each
// policy that applies has a rule under allow that is true.
type KeyAccessPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the rules.
	// Example: {allow: [{name: cleared, when: caller.claims.clearance >= 3}]}.
	// +required
	Spec KeyAccessPolicySpec `json:"spec"`

	// status is the state of the policy in the key access services, as the
	// operator knows it.
	// Example: {services: 2}.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status KeyAccessStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// KeyAccessPolicyList is a list of KeyAccessPolicies.
type KeyAccessPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KeyAccessPolicy `json:"items"`
}

// KeyAccessPolicySpec has the rules of a policy. docs/key-access.md has the
// variables that expressions may read.
// +kubebuilder:validation:XValidation:rule="has(self.deny) || has(self.allow) || has(self.rego)",message="found no rule, expected rules that allow or deny"
// +kubebuilder:validation:XValidation:rule="!has(self.rego) || !has(self.deny) && !has(self.allow)",message="found rego beside rules, expected one or the other"
type KeyAccessPolicySpec struct {
	// appliesTo says which data keys the policy is for. If it is absent, it is for
	// all of them.
	// Example: "'https://example.com/attr/level/value/secret' in object.attributes".
	// +optional
	AppliesTo KeyAccessExpression `json:"appliesTo,omitempty"`

	// deny are rules, one of which is enough to deny a data key.
	// Example: [{name: nights, when: now.getHours('Europe/Berlin') < 6}].
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Deny []KeyAccessRule `json:"deny,omitempty"`

	// allow are rules, one of which is needed to release a data key.
	// Example: [{name: cleared, when: caller.claims.clearance >= 3}].
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Allow []KeyAccessRule `json:"allow,omitempty"`

	// rego is a module in Rego, which has the rules instead of deny and allow. It
	// is refused unless the chart's value keyAccess.rego permits it. Its package
	// is keyaccess, and it has a rule allow and may have a rule deny.
	// Example: "package keyaccess\nallow if input.caller.claims.clearance >= 3".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Rego string `json:"rego,omitempty"`
}

// KeyAccessRule is an expression with a name for logs and audit records.
type KeyAccessRule struct {
	// name is the name of the rule in logs and audit records.
	// Example: cleared.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`
	Name string `json:"name"`

	// when is whether the rule holds.
	// Example: caller.claims.clearance >= 3.
	// +required
	When KeyAccessExpression `json:"when"`
}

// KeyAccessExpression is an expression in CEL, which has the type bool.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=4096
type KeyAccessExpression string

// KeyAccessStatus is the state of a KeyAccessPolicy or KeyAccessPeer in the key
// access services.
type KeyAccessStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// It is -1 until the operator has written the first status.
	// Example: 3.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// services is the number of key access services that have reported the
	// object.
	// Example: 2.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Services int32 `json:"services"`

	// conditions are Accepted (whether nothing is wrong with the object) and Ready
	// (whether all key access services use it as it is).
	// Example: [{type: Ready, status: "False", reason: Invalid}].
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Reasons of the conditions of KeyAccessPolicies and KeyAccessPeers, besides ReasonInvalid.
const (
	// ReasonUnderstood says that nothing is wrong with the object.
	ReasonUnderstood = "Understood"
	// ReasonInUse says that all key access services use the object as it is.
	ReasonInUse = "InUse"
	// ReasonHeldBack says that a key access service still uses an earlier form of the
	// object, because another object is wrong.
	ReasonHeldBack = "HeldBack"
	// ReasonNoService says that no key access service has answered the operator.
	ReasonNoService = "NoService"
	// ReasonNotRead says that a key access service has not read the object as it is.
	ReasonNotRead = "NotRead"
)
