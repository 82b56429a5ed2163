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

// AnnotationPrefix is what the names of all annotations of this project begin
// with. On a pod that gets a broker, one that is not known is refused.
const AnnotationPrefix = "cryptobroker.io/"

// Annotations by which a pod says what it wants; docs/pods.md has the values.
const (
	// InjectAnnotation asks for a broker ("true") or declines one ("false").
	// Every other value is refused.
	InjectAnnotation = "cryptobroker.io/inject"

	// AllowedProfilesAnnotation lists the profiles that the pod may use.
	AllowedProfilesAnnotation = "cryptobroker.io/profiles"

	// ContainerProfilesPrefix and the name of a container list the profiles
	// that this container may use.
	ContainerProfilesPrefix = "cryptobroker.io/profiles."

	// ContainersAnnotation lists the containers that get a socket.
	ContainersAnnotation = "cryptobroker.io/containers"

	// SocketPathAnnotation is where containers find the directory with their
	// socket.
	SocketPathAnnotation = "cryptobroker.io/socket-path"

	// CPURequestAnnotation, CPULimitAnnotation, MemoryRequestAnnotation and
	// MemoryLimitAnnotation are quantities for the broker's container.
	CPURequestAnnotation    = "cryptobroker.io/cpu-request"
	CPULimitAnnotation      = "cryptobroker.io/cpu-limit"
	MemoryRequestAnnotation = "cryptobroker.io/memory-request"
	MemoryLimitAnnotation   = "cryptobroker.io/memory-limit"

	// LogLevelAnnotation is what the broker logs.
	LogLevelAnnotation = "cryptobroker.io/log-level"

	// MetricsPortAnnotation is the broker's status port in this pod.
	MetricsPortAnnotation = "cryptobroker.io/metrics-port"

	// ImageAnnotation is the broker's image, one that the operator allows.
	ImageAnnotation = "cryptobroker.io/image"

	// KeysAnnotation lists Secrets with keys for the broker.
	KeysAnnotation = "cryptobroker.io/keys"

	// ImagePullSecretAnnotation is the Secret to pull the broker's image with.
	ImagePullSecretAnnotation = "cryptobroker.io/image-pull-secret"
)

// Annotations on pods that are written here, and by nobody else.
const (
	// ProfilesDigestAnnotation is written by the operator as
	// "<digest>.<try>" to make the kubelet sync the pod's volumes at once. It
	// says what was asked of the kubelet, not what the broker serves.
	ProfilesDigestAnnotation = "cryptobroker.io/profiles-digest"

	// ProfilesSnapshotAnnotation is the copy of the namespace's profiles that
	// the webhook takes at admission, for a pod that starts before its
	// ConfigMap can be mounted.
	ProfilesSnapshotAnnotation = "cryptobroker.io/profiles-snapshot"

	// ProfilesSnapshotSignatureAnnotation is the copy of the signature of those
	// profiles; a pod has both or none.
	ProfilesSnapshotSignatureAnnotation = "cryptobroker.io/profiles-snapshot-signature"

	// InjectedAnnotation is the webhook's stamp,
	// "<operator version>/<template hash>".
	InjectedAnnotation = "cryptobroker.io/injected"
)

// Annotations of a namespace's ConfigMap of profiles. They are no keys of it,
// because each key is a file in every pod with a broker.
const (
	// RemovedProfilesAnnotation is a profile file with the profiles that were in
	// the set and are not any more.
	RemovedProfilesAnnotation = "cryptobroker.io/removed-profiles"

	// ProfilesHistoryAnnotation is JSON: how often each name was allowed to become
	// weaker, marks of removed profiles for which there was no room, and whether there
	// was no room for those either.
	ProfilesHistoryAnnotation = "cryptobroker.io/profiles-history"

	// MemorySignatureAnnotation is the signature of the two annotations above together
	// with the set beside them.
	MemorySignatureAnnotation = "cryptobroker.io/profiles-history-signature"

	// OldestProfilesAnnotation is JSON: by the name of a resource definition, when
	// the oldest of its profiles was created that applies to the namespace.
	OldestProfilesAnnotation = "cryptobroker.io/oldest-profiles"
)

// AllowWeakerAnnotation of a CryptoProfile or ClusterCryptoProfile is the digest
// of exactly one change that makes its profile weaker, and allows it. Several are
// separated by commas. Who writes it needs the verb "weaken" on the object.
const AllowWeakerAnnotation = "cryptobroker.io/allow-weaker"

// Labels on namespaces.
const (
	// InjectionLabel with the value InjectionEnabled makes injection the
	// default for pods of the namespace.
	InjectionLabel   = "cryptobroker.io/injection"
	InjectionEnabled = "enabled"
)

// Labels on ClusterCryptoProfiles.
const (
	// CatalogueLabel with the value CatalogueLabelValue marks those that the
	// operator keeps as its catalogue has them.
	CatalogueLabel      = "cryptobroker.io/catalogue"
	CatalogueLabelValue = "true"
)

// Names inside an injected pod; they are reserved.
const (
	// BrokerContainer is the name of the broker's init container.
	BrokerContainer = "crypto-broker"

	// SocketVolume holds the sockets, one directory for each app container.
	SocketVolume = "crypto-broker-socket"

	// ProfilesVolume holds the profiles; only the broker mounts it.
	ProfilesVolume = "crypto-broker-profiles"

	// KeysVolumePrefix and a number from 1 on name the volumes of Secrets with
	// keys; only the broker mounts them.
	KeysVolumePrefix = "crypto-broker-keys-"
)

// Namespaces whose pods are never touched and that get no profiles, besides
// the operator's own.
const (
	SystemNamespace    = "kube-system"
	NodeLeaseNamespace = "kube-node-lease"
)
