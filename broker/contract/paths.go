// SPDX-License-Identifier: Apache-2.0

package contract

// Paths in the containers of an injected pod.
const (
	// SocketDir is where clients look for the broker's socket. Each container
	// mounts its own directory of SocketVolume there.
	SocketDir = "/tmp/open-crypto-broker"

	// SocketFile is the file name of every socket; clients have it built in.
	SocketFile = "crypto-broker-server.sock"

	// BrokerSocketDir is where the broker's container has the directories of all
	// containers. It is short, because the path of a socket has at most 107
	// bytes and the name of a container up to 63.
	BrokerSocketDir = "/run/broker"

	// StateDir is where a broker keeps the set that it serves. Other containers
	// mount only their own directories of that volume, and no container can have
	// this name.
	StateDir = BrokerSocketDir + "/.served"

	// ProfilesDir is where the broker's container has the set of profiles.
	ProfilesDir = "/etc/crypto-broker/profiles"

	// KeysDir has a directory for each Secret with keys.
	KeysDir = "/etc/crypto-broker/keys"

	// BrokerBinary is the broker's program in its image.
	BrokerBinary = "/broker"
)

// SocketVariable is the environment variable by which clients find the socket.
const SocketVariable = "CRYPTO_BROKER_SOCKET"

// BrokerVariablePrefix is what the names of the broker's own environment variables
// begin with.
const BrokerVariablePrefix = "CRYPTO_BROKER_"
