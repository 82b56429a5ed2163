// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"strings"
)

// Reserved names in a pod.
const (
	// BrokerContainer is the name of the broker's init container.
	BrokerContainer = "crypto-broker"

	// SocketVolume is the name of the volume with the sockets. It has a directory for each
	// container that calls.
	SocketVolume = "crypto-broker-socket"

	// ProfilesVolume is the name of the volume with the profiles. Only the broker mounts it.
	ProfilesVolume = "crypto-broker-profiles"

	// KeysVolumePrefix is the beginning of the names of the volumes with Secrets of keys. A
	// number from 1 on follows. Only the broker mounts them.
	KeysVolumePrefix = "crypto-broker-keys-"

	// SessionRedisVolume is the name of the volume with the Secret of settings for sessions in
	// Redis. Only the broker mounts it.
	SessionRedisVolume = "crypto-broker-session-redis"

	// KeyGatewayVolume is the name of the volume with the files that the broker needs to call the
	// key gateway. Only the broker mounts it.
	KeyGatewayVolume = "crypto-broker-key-gateway"
)

// KeyGatewayAudience is the audience of tokens for the key gateway.
const KeyGatewayAudience = "crypto-broker-key-gateway"

// IsBroker reports whether an init container of this name and restart policy is a
// broker: it has the reserved name and keeps running beside the application. The
// policy is nil for an init container that ends before the application starts.
//
// A pod that is being created is different: the webhook makes a broker of a container with
// the reserved name, or refuses the container.
func IsBroker[Policy ~string](name string, restartPolicy *Policy) bool {
	return name == BrokerContainer && restartPolicy != nil && *restartPolicy == "Always"
}

// IsReservedVolume reports whether the name is reserved for a volume of the broker.
func IsReservedVolume(name string) bool {
	switch name {
	case SocketVolume, ProfilesVolume, SessionRedisVolume, KeyGatewayVolume:
		return true
	}
	return strings.HasPrefix(name, KeysVolumePrefix)
}

// Namespaces of Kubernetes that never get brokers or profiles.
const (
	SystemNamespace    = "kube-system"
	nodeLeaseNamespace = "kube-node-lease"
)

// IsExcluded reports whether a namespace never gets brokers or profiles. more are excluded
// namespaces in addition to the namespaces of Kubernetes, such as the operator's own namespace.
func IsExcluded(namespace string, more ...string) bool {
	return namespace == SystemNamespace || namespace == nodeLeaseNamespace || slices.Contains(more, namespace)
}
