// SPDX-License-Identifier: Apache-2.0

package contract

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

// Annotations on pods that the operator writes, and nobody else.
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

// The label of a namespace by which all its pods ask.
const (
	// InjectionLabel with the value InjectionEnabled makes injection the
	// default for pods of the namespace.
	InjectionLabel   = "cryptobroker.io/injection"
	InjectionEnabled = "enabled"
)
