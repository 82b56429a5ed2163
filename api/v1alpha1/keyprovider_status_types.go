// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KeyProviderStatus is the state of a key provider in the key gateways. Numbers
// such as latencies are written once a minute at most.
type KeyProviderStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// It is -1 until the operator has written the first status.
	// Example: 3.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// gateways is the number of key gateways that have reported the provider.
	// Example: 2.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Gateways int32 `json:"gateways"`

	// secretVersion is the metadata.resourceVersion of the Secret with the
	// credentials that all gateways use.
	// Example: "48213".
	// +optional
	SecretVersion string `json:"secretVersion,omitempty"`

	// reachable is the number of endpoints that all gateways reach, and the number
	// of all endpoints. Example: 1/2.
	// +optional
	Reachable string `json:"reachable,omitempty"`

	// latency is the longest latency of the endpoints.
	// Example: 5ms.
	// +optional
	Latency string `json:"latency,omitempty"`

	// endpoints has the state of each server of the key manager.
	// Example: [{address: "kmip-1.example.com:5696", state: Reachable}].
	// +optional
	// +listType=map
	// +listMapKey=address
	// +kubebuilder:validation:MaxItems=16
	Endpoints []KeyEndpointStatus `json:"endpoints,omitempty"`

	// conditions are Ready (whether the provider is accepted and each gateway
	// reaches a server), Accepted (whether the gateways have opened the provider
	// with its credentials) and Reachable (whether each gateway reaches a server).
	// Example: [{type: Ready, status: "False", reason: SecretNotFound}].
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// KeyEndpointStatus is the state of one server of a key manager.
type KeyEndpointStatus struct {
	// address is the server, as spec.endpoints has it. For type aws-kms without
	// endpoints it is the service of the region, and for pkcs11 the library.
	// Example: kmip-1.example.com:5696.
	// +required
	Address string `json:"address"`

	// state is whether all key gateways reach the server, some or none. Unknown
	// is a server that none of them has contacted yet.
	// +required
	// +kubebuilder:validation:Enum=Reachable;PartlyReachable;Unreachable;Unknown
	State string `json:"state"`

	// failure is why a gateway does not reach the server, or why the server does
	// not serve it: NameNotFound, NotConnected, TimedOut, CertificateNotTrusted,
	// CredentialsRefused or BadReply.
	// Example: TimedOut.
	// +optional
	Failure string `json:"failure,omitempty"`

	// reachedBy is the number of gateways that reach the server. Example: 2.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReachedBy int32 `json:"reachedBy"`

	// pausedBy is the number of gateways that send the server no requests for a
	// while, because three in a row failed. Example: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PausedBy int32 `json:"pausedBy"`

	// version is what the server says of its version: the version of the protocol
	// for type kmip, and of the server for openbao.
	// Example: KMIP 1.4.
	// +optional
	Version string `json:"version,omitempty"`

	// latency is the longest average time of requests in a gateway. It is rounded
	// up to 1, 2 or 5 times a power of ten. A neighbouring value is not written.
	// Example: 5ms.
	// +optional
	Latency string `json:"latency,omitempty"`

	// connections is the number of connections that all gateways have. Example: 4.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Connections int32 `json:"connections"`
}

// ConditionReachable says whether each key gateway reaches a server of a key
// provider.
const ConditionReachable = "Reachable"

// States of an endpoint.
const (
	EndpointReachable       = "Reachable"
	EndpointPartlyReachable = "PartlyReachable"
	EndpointUnreachable     = "Unreachable"
	EndpointUnknown         = "Unknown"
)

// Reasons of the condition Accepted of a key provider, besides ReasonInvalid.
const (
	// ReasonOpened says that all gateways have opened the provider.
	ReasonOpened = "Opened"
	// ReasonNoGateway says that no key gateway has answered the operator.
	ReasonNoGateway = "NoGateway"
	// ReasonNotOpened says that a gateway has not opened the provider yet.
	ReasonNotOpened = "NotOpened"
	// ReasonSecretNotFound says that there is no Secret with the credentials.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretForbidden says that a gateway may not read the Secret.
	ReasonSecretForbidden = "SecretForbidden"
	// ReasonSecretUnreadable says that a gateway could not read the Secret yet.
	ReasonSecretUnreadable = "SecretUnreadable"
	// ReasonInvalidCredentials says that the Secret has no credentials that the
	// provider can be opened with.
	ReasonInvalidCredentials = "InvalidCredentials"
)

// Reasons of the condition Reachable of a key provider, besides ReasonNotAccepted.
const (
	// ReasonAllReachable says that all gateways reach all servers.
	ReasonAllReachable = "AllReachable"
	// ReasonSomeUnreachable says that each gateway reaches a server, and not all.
	ReasonSomeUnreachable = "SomeUnreachable"
	// ReasonUnreachable says that a gateway reaches no server.
	ReasonUnreachable = "Unreachable"
	// ReasonCredentialsRefused says that a gateway reaches no server that accepts
	// its credentials.
	ReasonCredentialsRefused = "CredentialsRefused"
	// ReasonNotContacted says that no server was contacted yet.
	ReasonNotContacted = "NotContacted"
)
