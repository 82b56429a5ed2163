// SPDX-License-Identifier: Apache-2.0

package contract

// AnnotationPrefix is the beginning of the names of all annotations of this project. On a pod
// that gets a broker, unknown annotations with this prefix are refused.
const AnnotationPrefix = "cryptobroker.io/"

// Annotations that users write on pods. docs/pods.md has their values.
const (
	// InjectAnnotation asks for a broker ("true") or declines one ("false").
	// Every other value is refused.
	InjectAnnotation = "cryptobroker.io/inject"

	// AllowedProfilesAnnotation lists the profiles that the pod may use.
	AllowedProfilesAnnotation = "cryptobroker.io/profiles"

	// ContainerProfilesPrefix is the beginning of an annotation that lists the profiles of
	// one container. The name of the container follows.
	ContainerProfilesPrefix = "cryptobroker.io/profiles."

	// ContainersAnnotation lists the containers that get a socket.
	ContainersAnnotation = "cryptobroker.io/containers"

	// SocketPathAnnotation is the path of the directory in which containers find their
	// socket.
	SocketPathAnnotation = "cryptobroker.io/socket-path"

	// CPURequestAnnotation, CPULimitAnnotation, MemoryRequestAnnotation and
	// MemoryLimitAnnotation are the resources of the broker's container, as quantities.
	CPURequestAnnotation    = "cryptobroker.io/cpu-request"
	CPULimitAnnotation      = "cryptobroker.io/cpu-limit"
	MemoryRequestAnnotation = "cryptobroker.io/memory-request"
	MemoryLimitAnnotation   = "cryptobroker.io/memory-limit"

	// LogLevelAnnotation is the log level of the broker. It may change while the pod runs.
	LogLevelAnnotation = "cryptobroker.io/log-level"

	// TracesSamplerAnnotation is the sampler of the broker's spans, and
	// TracesRatioAnnotation the part of the traces that a sampler by ratio takes.
	TracesSamplerAnnotation = "cryptobroker.io/traces-sampler"
	TracesRatioAnnotation   = "cryptobroker.io/traces-ratio"

	// MetricsPortAnnotation is the broker's status port in this pod.
	MetricsPortAnnotation = "cryptobroker.io/metrics-port"

	// ImageAnnotation is the image of the broker. The operator has to allow it.
	ImageAnnotation = "cryptobroker.io/image"

	// SessionGatewayAnnotation is the port of the session gateway and the port of the
	// application, "8443:8080". SessionProfileAnnotation is the profile of its sessions, and
	// SessionPlainPathsAnnotation lists the paths of requests without encryption.
	SessionGatewayAnnotation    = "cryptobroker.io/session-gateway"
	SessionProfileAnnotation    = "cryptobroker.io/session-profile"
	SessionPlainPathsAnnotation = "cryptobroker.io/session-plain-paths"

	// SessionRedisAnnotation is a Secret with the settings for sessions in Redis.
	SessionRedisAnnotation = "cryptobroker.io/session-redis"

	// KeysAnnotation lists Secrets with keys for the broker.
	KeysAnnotation = "cryptobroker.io/keys"

	// ImagePullSecretAnnotation is the Secret with which the kubelet pulls the broker's
	// image.
	ImagePullSecretAnnotation = "cryptobroker.io/image-pull-secret"
)

// Annotations on pods that only the operator writes.
const (
	// ProfilesDigestAnnotation is "<digest>.<try>". The operator writes it so that the
	// kubelet updates the volumes of the pod at once. It does not say what the broker
	// serves.
	ProfilesDigestAnnotation = "cryptobroker.io/profiles-digest"

	// ProfilesSnapshotAnnotation is a copy of the namespace's profile file, which the
	// webhook makes at admission. A pod uses it if it starts before its ConfigMap can be
	// mounted. The operator removes it when it writes ProfilesDigestAnnotation.
	ProfilesSnapshotAnnotation = "cryptobroker.io/profiles-snapshot"

	// ProfilesSnapshotSignatureAnnotation is a copy of the signature of the snapshot.
	ProfilesSnapshotSignatureAnnotation = "cryptobroker.io/profiles-snapshot-signature"

	// InjectedAnnotation is the webhook's stamp,
	// "<operator version>/<template hash>".
	InjectedAnnotation = "cryptobroker.io/injected"
)

// The label of a namespace whose pods get brokers by default.
const (
	// InjectionLabel is the name of the label, and InjectionEnabled its value.
	InjectionLabel   = "cryptobroker.io/injection"
	InjectionEnabled = "enabled"
)
