// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=kprov,categories=crypto-broker
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="The kind of key manager"
// +kubebuilder:printcolumn:name="Reachable",type=string,JSONPath=`.status.reachable`,description="How many of the servers all key gateways reach"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the provider is accepted and each key gateway reaches a server"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the provider is ready or not"
// +kubebuilder:printcolumn:name="Latency",type=string,JSONPath=`.status.latency`,description="The longest latency of the servers"
// +kubebuilder:printcolumn:name="Endpoints",type=string,JSONPath=`.spec.endpoints`,priority=1,description="The servers of the key manager"
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.spec.credentials.secretRef.name`,priority=1,description="The Secret with the credentials"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 32 && !self.metadata.name.contains('.')",message="metadata.name is the part of a key id before the slash, expected at most 32 bytes and no dot"
// +kubebuilder:validation:XValidation:rule="self.spec.type != 'pkcs11'",message="type pkcs11 loads a library into the key gateway, which only a ClusterKeyProvider may"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.openbao) || !has(self.spec.openbao.role)",message="openbao.role logs in as the key gateway itself, which only a ClusterKeyProvider may: set credentials with a token"
// +kubebuilder:validation:XValidation:rule="self.spec.type != 'aws-kms' || has(self.spec.credentials)",message="without credentials the key gateway would use its own identity, which only a ClusterKeyProvider may: set credentials"

// KeyProvider is a key manager for the profiles of its namespace. A profile
// names its keys as <name of the provider>/<id of the key>. Brokers reach the
// key manager through the key gateway. If a ClusterKeyProvider of the same
// name selects the namespace, only the ClusterKeyProvider counts.
type KeyProvider struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says how to reach the key manager, and who may use it.
	// Example: {type: kmip, endpoints: ["kmip-1.example.com:5696"],
	// credentials: {secretRef: {name: kmip-client}}}.
	// +required
	Spec KeyProviderSpec `json:"spec"`

	// status is the state of the provider in the key gateways, as the operator
	// knows it.
	// Example: {reachable: 2/2, latency: 5ms}.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status KeyProviderStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// KeyProviderList is a list of KeyProviders.
type KeyProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KeyProvider `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ckprov,categories=crypto-broker
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="The kind of key manager"
// +kubebuilder:printcolumn:name="Reachable",type=string,JSONPath=`.status.reachable`,description="How many of the servers all key gateways reach"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the provider is accepted and each key gateway reaches a server"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the provider is ready or not"
// +kubebuilder:printcolumn:name="Latency",type=string,JSONPath=`.status.latency`,description="The longest latency of the servers"
// +kubebuilder:printcolumn:name="Endpoints",type=string,JSONPath=`.spec.endpoints`,priority=1,description="The servers of the key manager"
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.spec.credentials.secretRef.name`,priority=1,description="The Secret with the credentials"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 32 && !self.metadata.name.contains('.')",message="metadata.name is the part of a key id before the slash, expected at most 32 bytes and no dot"

// ClusterKeyProvider is a KeyProvider for every namespace that its selector
// selects. There, a KeyProvider of the same name does not count.
type ClusterKeyProvider struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says how to reach the key manager, and which namespaces and profiles
	// may use it.
	// Example: {type: kmip, endpoints: ["kmip-1.example.com:5696"],
	// credentials: {secretRef: {name: kmip-client}},
	// namespaceSelector: {matchLabels: {environment: production}}}.
	// +required
	Spec ClusterKeyProviderSpec `json:"spec"`

	// status is the state of the provider in the key gateways, as the operator
	// knows it.
	// Example: {reachable: 2/2, latency: 5ms}.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status KeyProviderStatus `json:"status,omitempty"`
}

// ClusterKeyProviderSpec is a key provider and the namespaces that it is for.
type ClusterKeyProviderSpec struct {
	// namespaceSelector selects the namespaces whose profiles may use the
	// provider, by their labels. If it is absent or empty, every namespace may,
	// except for kube-system, kube-node-lease and the operator's own namespace,
	// which never get profiles.
	// Example: {matchLabels: {environment: production}}.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	KeyProviderSpec `json:",inline"`
}

// +kubebuilder:object:root=true

// ClusterKeyProviderList is a list of ClusterKeyProviders.
type ClusterKeyProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterKeyProvider `json:"items"`
}

// KeyProviderSpec says how to reach a key manager, and who may use it.
// +kubebuilder:validation:XValidation:rule="!(self.type in ['kmip', 'openbao']) || has(self.endpoints)",message="endpoints is missing, expected at least one server of the key manager"
// +kubebuilder:validation:XValidation:rule="self.type != 'pkcs11' || !has(self.endpoints)",message="endpoints is not for type pkcs11, whose device is behind its library"
// +kubebuilder:validation:XValidation:rule="self.type != 'kmip' || !has(self.endpoints) || self.endpoints.all(e, !e.contains('/'))",message="endpoints of type kmip are host or host:port, without a scheme"
// +kubebuilder:validation:XValidation:rule="!(self.type in ['openbao', 'aws-kms']) || !has(self.endpoints) || self.endpoints.all(e, e.startsWith('https://'))",message="endpoints of the types openbao and aws-kms are URLs that begin with https://"
// +kubebuilder:validation:XValidation:rule="!has(self.openbao) || self.type == 'openbao'",message="openbao is only for type openbao"
// +kubebuilder:validation:XValidation:rule="has(self.awsKMS) == (self.type == 'aws-kms')",message="awsKMS is required with type aws-kms, and not allowed with another type"
// +kubebuilder:validation:XValidation:rule="has(self.pkcs11) == (self.type == 'pkcs11')",message="pkcs11 is required with type pkcs11, and not allowed with another type"
// +kubebuilder:validation:XValidation:rule="has(self.credentials) || self.type == 'aws-kms' || has(self.openbao) && has(self.openbao.role)",message="credentials is missing, expected the Secret with the credentials for the key manager"
type KeyProviderSpec struct {
	// type is the kind of key manager: kmip is KMIP 1.0 to 1.4 over TLS, openbao
	// is OpenBao or Vault, aws-kms is the key management service of AWS, and
	// pkcs11 is a device with a PKCS #11 library.
	// +required
	// +kubebuilder:validation:Enum=kmip;openbao;aws-kms;pkcs11
	Type string `json:"type"`

	// endpoints are the servers of the key manager, which all serve the same
	// keys: host or host:port for type kmip, URLs for openbao and aws-kms. The
	// first one is the master, if there is one. aws-kms needs none.
	// Example: ["kmip-1.example.com:5696", "kmip-2.example.com:5696"].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(e, self.exists_one(f, f == e))",message="an endpoint is in the list twice"
	Endpoints []KeyEndpoint `json:"endpoints,omitempty"`

	// serverName is the name in the certificates of the servers, if it is not
	// the host of the endpoint.
	// Example: kmip.example.com.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServerName string `json:"serverName,omitempty"`

	// credentials are what the key manager demands. Types openbao with a role
	// and aws-kms may leave them out in a ClusterKeyProvider; the key gateway
	// then uses its own identity.
	// Example: {secretRef: {name: kmip-client}}.
	// +optional
	Credentials *KeyProviderCredentials `json:"credentials,omitempty"`

	// connections are the settings of the connections to each endpoint.
	// Example: {min: 1, max: 8, requestTimeout: 10s}.
	// +optional
	Connections *KeyProviderConnections `json:"connections,omitempty"`

	// cacheTime is how long keys, and what is known of them, are used without
	// asking again, at most 1m, which is the default. 0s turns the cache off.
	// Example: 30s.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('1m')",message="expected at most 1m: a key that is revoked must not be used for longer"
	CacheTime string `json:"cacheTime,omitempty"`

	// allowedProfiles are the names of the profiles that may use the provider.
	// If it is absent, all profiles of its namespaces may.
	// Example: [orders, payments].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	AllowedProfiles []AllowedProfileName `json:"allowedProfiles,omitempty"`

	// openbao are the settings of type openbao.
	// Example: {engine: transit, mount: transit}.
	// +optional
	OpenBao *OpenBaoSettings `json:"openbao,omitempty"`

	// awsKMS are the settings of type aws-kms.
	// Example: {region: eu-central-1}.
	// +optional
	AWSKMS *AWSKMSSettings `json:"awsKMS,omitempty"`

	// pkcs11 are the settings of type pkcs11, which only a ClusterKeyProvider may
	// have.
	// Example: {module: /usr/lib/softhsm/libsofthsm2.so, tokenLabel: orders}.
	// +optional
	PKCS11 *PKCS11Settings `json:"pkcs11,omitempty"`
}

// KeyEndpoint is the address of a server: printable ASCII without spaces.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^[!-~]+$`
type KeyEndpoint string

// AllowedProfileName is the name of a profile, as applications use it.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
type AllowedProfileName string

// KeyProviderCredentials say where the credentials for a key manager are.
type KeyProviderCredentials struct {
	// secretRef names the Secret: in the namespace of a KeyProvider, and in the
	// operator's namespace for a ClusterKeyProvider. Its entries are tls.crt,
	// tls.key and ca.crt (PEM) for TLS; token for openbao; pin for pkcs11;
	// aws_access_key_id and aws_secret_access_key for aws-kms.
	// Example: {name: kmip-client}.
	// +required
	SecretRef SecretReference `json:"secretRef"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// name is the name of the Secret.
	// Example: kmip-client.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// KeyProviderConnections are the settings of the connections to each endpoint.
// +kubebuilder:validation:XValidation:rule="!has(self.min) || self.min <= (has(self.max) ? self.max : 8)",message="min is larger than max, which is 8 by default"
type KeyProviderConnections struct {
	// min is the number of connections of each replica of the key gateway that
	// stay open while nobody uses them. The default is 1. Example: 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Min int32 `json:"min,omitempty"`

	// max is the maximum number of connections that each replica of the key
	// gateway may have. The default is 8. Example: 16.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Max int32 `json:"max,omitempty"`

	// lifetime is how long a connection is used, at most 24h. The default is 30m.
	// Example: 30m.
	// +optional
	Lifetime ConnectionTime `json:"lifetime,omitempty"`

	// idleTime is how long a connection may be idle, at most 24h. The default is
	// 1m.
	// Example: 1m.
	// +optional
	IdleTime ConnectionTime `json:"idleTime,omitempty"`

	// connectTimeout is how long an endpoint may take to connect, at most 24h.
	// The default is 5s.
	// Example: 5s.
	// +optional
	ConnectTimeout ConnectionTime `json:"connectTimeout,omitempty"`

	// requestTimeout is how long an endpoint may take to answer, at most 24h. The
	// default is 10s.
	// Example: 10s.
	// +optional
	RequestTimeout ConnectionTime `json:"requestTimeout,omitempty"`

	// roundRobin makes requests that change nothing go to all endpoints in turn.
	// By default, they go to the less loaded of two.
	// Example: true.
	// +optional
	RoundRobin bool `json:"roundRobin,omitempty"`
}

// ConnectionTime is a positive duration as Go has them, such as 1m30s.
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s') && duration(self) <= duration('24h')",message="expected more than 0s and at most 24h"
type ConnectionTime string

// OpenBaoSettings are the settings of a provider of type openbao.
type OpenBaoSettings struct {
	// engine is kv for version 2 of the key-value engine, whose keys brokers
	// read, or transit, whose keys stay in the key manager. The default is
	// transit.
	// +optional
	// +kubebuilder:validation:Enum=kv;transit
	Engine string `json:"engine,omitempty"`

	// mount is the path of the engine. The default is its usual one, secret or
	// transit.
	// Example: transit.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[!-~]+$`
	Mount string `json:"mount,omitempty"`

	// namespace is the namespace in the key manager, if it has namespaces.
	// Example: team-a.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[!-~]+$`
	Namespace string `json:"namespace,omitempty"`

	// role logs in as the key gateway with the Kubernetes method under this role,
	// which only a ClusterKeyProvider may. If it is absent, the credentials have
	// a token.
	// Example: key-gateway.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[!-~]+$`
	Role string `json:"role,omitempty"`
}

// AWSKMSSettings are the settings of a provider of type aws-kms.
type AWSKMSSettings struct {
	// region is the region of AWS that has the keys.
	// Example: eu-central-1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	Region string `json:"region"`
}

// PKCS11Settings are the settings of a provider of type pkcs11.
type PKCS11Settings struct {
	// module is the absolute path of the library of the device, in the container
	// of the key gateway.
	// Example: /usr/lib/softhsm/libsofthsm2.so.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^/[!-~]+$`
	Module string `json:"module"`

	// tokenLabel is the label of the token that has the keys.
	// Example: orders.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	TokenLabel string `json:"tokenLabel"`
}
