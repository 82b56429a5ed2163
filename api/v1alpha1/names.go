// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Names in Kubernetes that the webhook, the controllers and the chart agree on.
const (
	// ProfilesConfigMap is the name of the ConfigMap in each namespace that
	// holds the namespace's rendered set of profiles. Only the operator
	// writes it.
	ProfilesConfigMap = "crypto-broker-profiles"

	// FieldManager names the operator in managedFields.
	FieldManager = "crypto-broker-operator"

	// LeaderElectionLease is the name of the Lease in the operator's namespace
	// whose holder runs the reconcilers.
	LeaderElectionLease = "crypto-broker-operator"
)

// Annotations on pods.
const (
	// InjectAnnotation asks for a broker ("true") or declines one ("false").
	// Every other value is refused.
	InjectAnnotation = "cryptobroker.io/inject"

	// ProfilesDigestAnnotation is written by the operator as
	// "<digest>.<try>" to make the kubelet sync the pod's volumes at once. It
	// says what was asked of the kubelet, not what the broker serves.
	ProfilesDigestAnnotation = "cryptobroker.io/profiles-digest"

	// ProfilesSnapshotAnnotation is the copy of the namespace's profiles that
	// the webhook takes at admission, for a pod that starts before its
	// ConfigMap can be mounted.
	ProfilesSnapshotAnnotation = "cryptobroker.io/profiles-snapshot"

	// InjectedAnnotation is the webhook's stamp,
	// "<operator version>/<template hash>".
	InjectedAnnotation = "cryptobroker.io/injected"
)

// Labels on namespaces.
const (
	// InjectionLabel with the value InjectionEnabled makes injection the
	// default for pods of the namespace.
	InjectionLabel   = "cryptobroker.io/injection"
	InjectionEnabled = "enabled"
)

// Names inside an injected pod; they are reserved.
const (
	// BrokerContainer is the name of the broker's init container.
	BrokerContainer = "crypto-broker"

	// SocketVolume holds the sockets, one directory for each app container.
	SocketVolume = "crypto-broker-socket"

	// ProfilesVolume holds the profiles; only the broker mounts it.
	ProfilesVolume = "crypto-broker-profiles"
)

// Namespaces whose pods are never touched and that get no profiles, besides
// the operator's own.
const (
	SystemNamespace    = "kube-system"
	NodeLeaseNamespace = "kube-node-lease"
)
