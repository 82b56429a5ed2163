// SPDX-License-Identifier: Apache-2.0

package contract

import "strings"

// Flags of the broker's program that the operator sets, without the dashes.
const (
	ProfilesDirFlag      = "profiles-dir"
	SocketDirFlag        = "socket-dir"
	SocketGroupFlag      = "socket-group"
	CallersFlag          = "callers"
	CallerProfilesFlag   = "caller-profiles"
	SharedIdentityFlag   = "shared-identity"
	StatusAddressFlag    = "status-address"
	LogLevelFlag         = "log-level"
	TracesSamplerFlag    = "traces-sampler"
	TracesRatioFlag      = "traces-sampler-arg"
	RequireFIPSFlag      = "require-fips"
	KeysDirFlag          = "keys-dir"
	TrustedKeysFlag      = "trusted-keys"
	ProfilesAudienceFlag = "profiles-audience"
	LowestRevisionFlag   = "lowest-revision"
	StateDirFlag         = "state-dir"
	InstanceFlag         = "instance"

	KeyGatewayFlag            = "key-gateway"
	KeyGatewayTokenFlag       = "key-gateway-token"
	KeyGatewayAuthoritiesFlag = "key-gateway-authorities"
	KeyGatewayCertificateFlag = "key-gateway-certificate"

	SessionGatewayFlag        = "session-gateway"
	SessionGatewayProfileFlag = "session-gateway-profile"
	SessionGatewayPlainFlag   = "session-gateway-plain"
	SessionRedisDirFlag       = "session-redis-dir"
)

// Argument returns the argument that sets a flag to a value.
func Argument(flag, value string) string { return "--" + flag + "=" + value }

// Switch returns the argument that turns on a flag without a value.
func Switch(flag string) string { return "--" + flag }

// ArgumentOf returns the value of a flag in the arguments of a broker, and reports whether the
// flag is there. If the flag is there several times, the last one counts, as for the broker.
func ArgumentOf(arguments []string, flag string) (value string, found bool) {
	for i, argument := range arguments {
		if text, ok := strings.CutPrefix(argument, Switch(flag)+"="); ok {
			value, found = text, true
		} else if argument == Switch(flag) && i+1 < len(arguments) {
			value, found = arguments[i+1], true
		}
	}
	return value, found
}
