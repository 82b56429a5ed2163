// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"strconv"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/gateway"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/broker/server"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/unixsocket"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/auditlog"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/logs"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// config has the settings of the command line and the environment.
type config struct {
	// choosesProcessors reports whether the broker chooses the number of processors by its calls.
	choosesProcessors bool

	profilesDir     string
	pollInterval    time.Duration
	trustedKeys     string
	trust           signed.Trust
	stateDir        string
	keysDir         string
	providersDir    string
	kmsDir          string
	sessionRedisDir string
	gateway         gateway.Options
	socketDir       string
	callers         []string
	callerProfiles  map[string][]string
	sharedIdentity  bool
	socketGroup     int
	statusAddress   string
	logLevel        string
	logLevelFile    string
	logFormat       string
	logOutput       string
	shutdownTimeout time.Duration
	memoryLimit     int64
	requireFIPS     bool
	tlsProvider     string
	instance        string
	development     bool
	environment     string
	maxStreams      uint32
	traces          *tracing.Config
	sessions        sessionGateway
	audit           auditlog.Settings
}

const tlsProviderFlag = "tls-provider"

func (c *config) settings() []setting {
	c.socketGroup = -1
	settings := []setting{
		{
			name: contract.ProfilesDirFlag, env: "CRYPTO_BROKER_PROFILES_DIR", kind: "path", set: absolutePath(&c.profilesDir),
			usage: "directory with the file Profiles.yaml; the file may appear later, and the broker follows its changes; required",
		},
		{
			name: "profiles-poll-interval", env: "CRYPTO_BROKER_PROFILES_POLL_INTERVAL", kind: "duration", initial: "10s", set: positiveDuration(&c.pollInterval),
			usage: "how often to read the file even if the system announces no change",
		},
	}
	settings = append(settings, c.trustSettings()...)
	settings = append(settings, []setting{
		{
			name: contract.KeysDirFlag, env: "CRYPTO_BROKER_KEYS_DIR", kind: "path", set: absolutePath(&c.keysDir),
			usage: "directory with the keys that requests and profiles name by id: <id>.key, <id>.crt, <id>.pub, <id>.bin, or <id>/tls.key and <id>/tls.crt; the broker follows its changes; without it the broker has no keys",
		},
		{
			name: "key-providers-dir", env: "CRYPTO_BROKER_KEY_PROVIDERS_DIR", kind: "path", set: absolutePath(&c.providersDir),
			usage: "directory with the file Providers.yaml, which has the key managers that key ids like <provider>/<id> name, and a directory <provider> with the credentials of each; the broker follows its changes",
		},
		{
			name: "kms-dir", env: "CRYPTO_BROKER_KMS_DIR", kind: "path", set: absolutePath(&c.kmsDir),
			usage: "directory with the files that KMS.Config of profiles names, each with the address, token and mount of an OpenBao server whose keys EncryptData and DecryptData use; the broker follows their changes",
		},
		{
			name: contract.SocketDirFlag, env: "CRYPTO_BROKER_SOCKET_DIR", kind: "path", initial: contract.SocketDir, set: absolutePath(&c.socketDir),
			usage: "directory of the socket " + contract.SocketFile,
		},
	}...)
	settings = append(settings, c.sessionRedisSetting())
	settings = append(settings, c.gatewaySettings()...)
	settings = append(settings, c.callerSettings()...)
	settings = append(settings, c.sessions.settings()...)
	settings = append(settings, auditSettings(&c.audit)...)
	return append(append(settings, []setting{
		{
			name: contract.SocketGroupFlag, env: "CRYPTO_BROKER_SOCKET_GROUP", kind: "gid", set: groupID(&c.socketGroup),
			usage: "id of the group that may connect; without it only the broker's own user may connect",
		},
		{
			name: contract.StatusAddressFlag, env: "CRYPTO_BROKER_STATUS_ADDRESS", kind: "address", set: address(&c.statusAddress),
			usage: "address of the HTTP port with /healthz, /readyz, /metrics and /profiles, such as :9470; without it there is no such port",
		},
		{
			name: "shutdown-timeout", env: "CRYPTO_BROKER_SHUTDOWN_TIMEOUT", kind: "duration", initial: "10s", set: positiveDuration(&c.shutdownTimeout),
			usage: "how long calls may take to end after SIGTERM, SIGINT or SIGHUP",
		},
		{
			name: "memory-limit", env: "CRYPTO_BROKER_MEMORY_LIMIT", kind: "size", set: byteSize(&c.memoryLimit, minMemoryLimit),
			usage: "memory in bytes that the broker may take, such as 128Mi (default the limit of the control group, else GOMEMLIMIT); a quarter of it is for requests in flight, with an equal share for each caller: calls and streams beyond the share fail with RESOURCE_EXHAUSTED, large messages wait. GOMEMLIMIT is set to seven eighths of it unless the environment sets GOMEMLIMIT",
		},
		{
			name: contract.RequireFIPSFlag, env: "CRYPTO_BROKER_REQUIRE_FIPS", kind: "bool", set: boolean(&c.requireFIPS),
			usage: "start only with the validated module in FIPS 140-3 mode, and refuse operations that FIPS 140-3 does not approve",
		},
		{
			name: tlsProviderFlag, env: "CRYPTO_BROKER_TLS_PROVIDER", kind: "provider", initial: tlsprovider.Go, set: oneOf(&c.tlsProvider, tlsprovider.Go, tlsprovider.OpenSSL),
			usage: "TLS implementation for the connections that the broker opens to key managers, key gateways and collectors of traces: go, or openssl for the OpenSSL of the system, which only programs of make build-openssl have",
		},
		{
			name: contract.InstanceFlag, env: contract.InstanceVariable, kind: "name", set: someText(&c.instance),
			usage: "name of this broker, such as the UID of its pod; it decides when the rollout of a profile reaches this broker; without it, the rollout reaches this broker last",
		},
		{
			name: "development-service", env: "CRYPTO_BROKER_DEVELOPMENT_SERVICE", kind: "bool", set: boolean(&c.development),
			usage: "offer Benchmark and FakeEndpoint, which are for developers of clients",
		},
		{
			name: "app-env", env: "CRYPTO_BROKER_APP_ENV", kind: "environment", initial: "prod", set: oneOf(&c.environment, "prod", "dev"),
			usage: "prod or dev; dev means --development-service",
		},
		{
			name: "grpc-max-concurrent-streams", env: "CRYPTO_BROKER_GRPC_MAX_CONCURRENT_STREAMS", kind: "number", initial: strconv.Itoa(server.DefaultMaxStreams), set: positive(&c.maxStreams),
			usage: "how many calls and streams a connection may have at one time; further ones wait at the client",
		},
		{
			name: contract.LogLevelFlag, env: "CRYPTO_BROKER_LOG_LEVEL", kind: "level", initial: "info", set: oneOf(&c.logLevel, logs.Names...),
			usage: "lowest level of the lines to log: debug, info, warn or error",
		},
		{
			name: "log-level-file", env: contract.LogLevelFileVariable, kind: "path", set: absolutePath(&c.logLevelFile),
			usage: "file with a log level that replaces --log-level; read again when it changes; --log-level is used while the file is missing or empty",
		},
		{
			name: "log-format", env: "CRYPTO_BROKER_LOG_FORMAT", kind: "format", initial: "json", set: oneOf(&c.logFormat, "json", "text"),
			usage: "json or text",
		},
		{
			name: "log-output", env: "CRYPTO_BROKER_LOG_OUTPUT", kind: "stream", initial: "stderr", set: oneOf(&c.logOutput, "stdout", "stderr"),
			usage: "stdout or stderr",
		},
	}...), c.traceSettings()...)
}

// read reads the configuration, and checks values that depend on each other.
func (c *config) read(args []string, lookup func(string) (string, bool), stdout io.Writer) error {
	settings := c.settings()
	flags, err := newFlags("broker", settings)
	if err != nil {
		return err
	}
	if err := parse(flags, settings, args, lookup); err != nil {
		return printHelp(err, stdout, serveUsage)
	}
	if c.profilesDir == "" {
		return program.Usagef("--profiles-dir or CRYPTO_BROKER_PROFILES_DIR is required: the absolute path of the directory with Profiles.yaml")
	}
	if err := c.readTrust(); err != nil {
		return err
	}
	if err := c.readTraces(); err != nil {
		return err
	}
	if err := c.readAudit(); err != nil {
		return err
	}
	if err := c.readGateway(); err != nil {
		return err
	}
	if len(c.callerProfiles) > 0 && len(c.callers) == 0 {
		return program.Usagef("--caller-profiles or CRYPTO_BROKER_CALLER_PROFILES says what callers may use, but no callers are named: expected --callers or CRYPTO_BROKER_CALLERS as well")
	}
	if err := c.readSessionGateway(); err != nil {
		return err
	}
	c.sharedIdentity = c.sharedIdentity || sharesProcesses(lookup, os.Getpid())
	sockets := c.sockets()
	if err := sockets.Validate(); err != nil {
		return program.Usagef("%v", err)
	}
	return nil
}

func (c *config) sockets() unixsocket.Options {
	return unixsocket.Options{Dir: c.socketDir, Callers: c.callers, Profiles: c.callerProfiles, Shared: c.sharedIdentity, Group: c.socketGroup}
}
