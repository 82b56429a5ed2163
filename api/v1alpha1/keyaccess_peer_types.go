// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=kapeer,categories=crypto-broker
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`,description="The other key access service"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether all key access services use the peer as it is"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the peer is ready or not"
// +kubebuilder:printcolumn:name="Services",type=integer,JSONPath=`.status.services`,description="How many key access services have reported the peer"
// +kubebuilder:printcolumn:name="Routes",type=string,JSONPath=`.spec.routes`,priority=1,description="Further services that are asked through the peer"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// KeyAccessPeer is another key access service, which the one of this namespace
// asks for data keys, and which may ask it.
type KeyAccessPeer struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says how to reach the peer, and who its callers are.
	// Example: {url: "https://keys.b.example"}.
	// +required
	Spec KeyAccessPeerSpec `json:"spec"`

	// status is the state of the peer in the key access services, as the operator
	// knows it.
	// Example: {services: 2}.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status KeyAccessStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// KeyAccessPeerList is a list of KeyAccessPeers.
type KeyAccessPeerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KeyAccessPeer `json:"items"`
}

// KeyAccessPeerSpec says how to reach a peer, and who its callers are.
type KeyAccessPeerSpec struct {
	// url is the peer as the objects of files name it: https and host, in lower
	// case and without a path.
	// Example: https://keys.b.example.
	// +required
	URL KeyAccessURL `json:"url"`

	// authorities are the certificate authorities of the peer's server, in PEM. If
	// they are absent, the authorities of the system are trusted.
	// Example: the content of a file that begins with -----BEGIN CERTIFICATE-----.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="!self.contains('PRIVATE KEY')",message="found a private key, expected certificates only: everybody who may read this resource can read it"
	Authorities string `json:"authorities,omitempty"`

	// routes are further services that are asked by way of the peer. They have
	// this service as a peer.
	// Example: ["https://keys.c.example"].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Routes []KeyAccessURL `json:"routes,omitempty"`

	// issuers are the issuers of the tokens of the peer's callers, with the
	// audiences that the peer has. If they are absent, they are the issuers of
	// the service.
	// Example: [{url: "https://idp.b.example", audiences: [key-access-b]}].
	// +optional
	// +listType=map
	// +listMapKey=url
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Issuers []KeyAccessIssuer `json:"issuers,omitempty"`

	// timeout is how long the peer may take to answer, at most 5m. The default is
	// 5s.
	// Example: 5s.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10ms') && duration(self) <= duration('5m')",message="expected 10ms to 5m"
	Timeout string `json:"timeout,omitempty"`
}

// KeyAccessURL is the URL of a key access service.
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^https://[^/?#@ ]+$`
type KeyAccessURL string

// KeyAccessIssuer is an issuer of tokens. Tokens that are bound to no key are
// never forwarded.
type KeyAccessIssuer struct {
	// url is the issuer as its tokens name it. Its keys are found by OpenID Connect
	// Discovery.
	// Example: https://idp.b.example/realms/files.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https://[^?#@ ]+$`
	URL string `json:"url"`

	// audiences are the names of the service in tokens, one of which a token has.
	// Example: [key-access-b].
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Audiences []KeyAccessAudience `json:"audiences"`

	// algorithms are the algorithms of the signatures of its tokens: ES256, ES384,
	// ES512, RS256, RS384, RS512, PS256, PS384, PS512 or EdDSA. If they are absent,
	// all are accepted.
	// Example: [ES256].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Algorithms []KeyAccessAlgorithm `json:"algorithms,omitempty"`

	// proofWithBearer accepts a proof even after the word Bearer.
	// Example: true.
	// +optional
	ProofWithBearer bool `json:"proofWithBearer,omitempty"`

	// proofWithPath accepts a proof also if it is for the path of the request,
	// without scheme and host.
	// Example: true.
	// +optional
	ProofWithPath bool `json:"proofWithPath,omitempty"`

	// requireTokenType demands the type at+jwt (RFC 9068).
	// Example: true.
	// +optional
	RequireTokenType bool `json:"requireTokenType,omitempty"`

	// authorities are the certificate authorities of the issuer's server, in PEM.
	// If they are absent, the authorities of the system are trusted.
	// Example: the content of a file that begins with -----BEGIN CERTIFICATE-----.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="!self.contains('PRIVATE KEY')",message="found a private key, expected certificates only: everybody who may read this resource can read it"
	Authorities string `json:"authorities,omitempty"`
}

// KeyAccessAudience is a name of a service in tokens.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
type KeyAccessAudience string

// KeyAccessAlgorithm is an algorithm of signatures (RFC 7518 and RFC 8037).
// +kubebuilder:validation:Enum=ES256;ES384;ES512;RS256;RS384;RS512;PS256;PS384;PS512;EdDSA
type KeyAccessAlgorithm string
