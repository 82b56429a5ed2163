// SPDX-License-Identifier: Apache-2.0

package contract

import "strings"

// Names inside a pod; they are reserved.
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

// IsBroker reports whether an init container of this name and restart policy is a
// broker: it has the reserved name and keeps running beside the application. The
// policy is nil for an init container that ends before the application starts.
//
// A pod that is being created is another matter. There the name alone is reserved,
// and the webhook refuses the container or makes a broker of it.
func IsBroker[Policy ~string](name string, restartPolicy *Policy) bool {
	return name == BrokerContainer && restartPolicy != nil && *restartPolicy == "Always"
}

// IsReservedVolume reports whether the name is reserved for a volume of the broker.
func IsReservedVolume(name string) bool {
	return name == SocketVolume || name == ProfilesVolume || strings.HasPrefix(name, KeysVolumePrefix)
}

// Namespaces that never get a broker and no profiles, besides the operator's own.
const (
	SystemNamespace    = "kube-system"
	NodeLeaseNamespace = "kube-node-lease"
)

// IsExcluded reports whether a namespace never gets a broker and no profiles. more
// are the namespaces that are left out besides those of Kubernetes: the operator's
// own, where it is known.
func IsExcluded(namespace string, more ...string) bool {
	if namespace == SystemNamespace || namespace == NodeLeaseNamespace {
		return true
	}
	for _, name := range more {
		if namespace == name {
			return true
		}
	}
	return false
}
