// SPDX-License-Identifier: Apache-2.0

package contract

// Paths in the containers of an injected pod.
const (
	// SocketDir is the directory in which clients look for the broker's socket. Each
	// container mounts its own directory of SocketVolume there.
	SocketDir = "/tmp/open-crypto-broker"

	// SocketFile is the file name of every socket. Clients know it.
	SocketFile = "crypto-broker-server.sock"

	// BrokerSocketDir is the directory in the broker's container with the directories of
	// all containers. The path is short, because the path of a socket may have 107 bytes,
	// and the name of a container 63.
	BrokerSocketDir = "/run/broker"

	// StateDir is the directory in which a broker stores the set that it serves. Other
	// containers do not see it: each mounts only the directory of its name, and no container
	// can have this name.
	StateDir = BrokerSocketDir + "/.served"

	// ProfilesDir is the directory with the profiles in the broker's container.
	ProfilesDir = "/etc/crypto-broker/profiles"

	// LogLevelFile is the file in ProfilesDir with the value of LogLevelAnnotation, which
	// is empty without the annotation.
	LogLevelFile = "log-level"

	// KeysDir has a directory for each Secret with keys.
	KeysDir = "/etc/crypto-broker/keys"

	// SessionRedisDir has the files of the Secret with the settings for sessions in Redis.
	SessionRedisDir = "/etc/crypto-broker/session-redis"

	// KeyGatewayDir has KeyGatewayToken and KeyGatewayAuthorities, and KeyGatewayCertificate where
	// brokers have certificates.
	KeyGatewayDir = "/etc/crypto-broker/key-gateway"

	// KeyGatewayToken is the file name of the pod's token for the key gateway.
	KeyGatewayToken = "token"

	// KeyGatewayAuthorities is the file name of the authorities of the key gateway's
	// certificate, in PEM. The ConfigMap with the profiles has an entry of this name.
	KeyGatewayAuthorities = "key-gateway-ca.crt"

	// KeyGatewayCertificate is the file name of the pod's certificate for the key gateway and its
	// private key, in PEM.
	KeyGatewayCertificate = "certificate.pem"

	// BrokerBinary is the path of the broker's program in its image.
	BrokerBinary = "/broker"
)

// SocketVariable is the name of the environment variable that has the path of the socket for
// clients.
const SocketVariable = "CRYPTO_BROKER_SOCKET"

// InstanceVariable is the variable of the broker's container with the UID of the pod, see
// InstanceFlag. A broker that does not know it ignores it, while it would not start with an
// unknown flag.
const InstanceVariable = BrokerVariablePrefix + "INSTANCE"

// LogLevelFileVariable is the variable with the path of the file that has the level of the
// broker's log.
const LogLevelFileVariable = BrokerVariablePrefix + "LOG_LEVEL_FILE"

// TracesAuthoritiesVariable is the variable with the certificate authorities of the collector of
// spans, in PEM.
const TracesAuthoritiesVariable = BrokerVariablePrefix + "TRACES_AUTHORITIES"

// AuditEndpointVariable is the variable with the URL of the collector of audit records.
// AuditAuthoritiesVariable is the variable with the collector's certificate authorities, in PEM.
const (
	AuditEndpointVariable    = BrokerVariablePrefix + "AUDIT_OTLP_ENDPOINT"
	AuditAuthoritiesVariable = BrokerVariablePrefix + "AUDIT_OTLP_AUTHORITIES"
)

// BrokerVariablePrefix is the beginning of the names of the broker's environment variables.
const BrokerVariablePrefix = "CRYPTO_BROKER_"
