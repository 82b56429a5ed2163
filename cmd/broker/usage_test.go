// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// execute runs the program in the process of the test.
func execute(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	lookup := func(name string) (string, bool) {
		i := slices.IndexFunc(env, func(variable string) bool { return strings.HasPrefix(variable, name+"=") })
		if i < 0 {
			return "", false
		}
		return strings.TrimPrefix(env[i], name+"="), true
	}
	var out, errs bytes.Buffer
	code = run(t.Context(), args, lookup, &out, &errs)
	return code, out.String(), errs.String()
}

func TestAWrongValueIsNamedInOneSentence(t *testing.T) {
	for sentence, test := range map[string]struct {
		env  []string
		args []string
		want string
	}{
		"no profiles":                        {nil, nil, "--profiles-dir or CRYPTO_BROKER_PROFILES_DIR is required: the absolute path of the directory with Profiles.yaml"},
		"an unknown command":                 {nil, []string{"surf"}, `unknown command "surf", expected serve (the default), health, version, fips or help`},
		"an unknown flag":                    {nil, []string{"--surf"}, "unknown flag: --surf"},
		"a stray argument":                   {nil, []string{"--profiles-dir", "/p", "x"}, `unexpected argument "x"`},
		"a relative path":                    {nil, []string{"--profiles-dir", "p"}, `invalid argument "p" for "--profiles-dir" flag: expected an absolute path`},
		"a relative path, variable":          {[]string{"CRYPTO_BROKER_PROFILES_DIR=p"}, nil, `invalid value "p" of the environment variable CRYPTO_BROKER_PROFILES_DIR: expected an absolute path`},
		"a group that is no number":          {nil, []string{"--profiles-dir", "/p", "--socket-group", "staff"}, `invalid argument "staff" for "--socket-group" flag: expected a group id from 0 to 4294967294`},
		"a group below 0":                    {[]string{"CRYPTO_BROKER_SOCKET_GROUP=-1"}, []string{"--profiles-dir", "/p"}, `invalid value "-1" of the environment variable CRYPTO_BROKER_SOCKET_GROUP: expected a group id from 0 to 4294967294`},
		"an address without port":            {nil, []string{"--profiles-dir", "/p", "--status-address", "localhost"}, `invalid argument "localhost" for "--status-address" flag: expected [host]:port such as :9470, with a port from 0 to 65535`},
		"a port that does not exist":         {nil, []string{"--profiles-dir", "/p", "--status-address", ":65536"}, `invalid argument ":65536" for "--status-address" flag: expected [host]:port such as :9470, with a port from 0 to 65535`},
		"an unknown log level":               {nil, []string{"--profiles-dir", "/p", "--log-level", "loud"}, `invalid argument "loud" for "--log-level" flag: expected one of debug, info, warn, error`},
		"a log to a file":                    {[]string{"CRYPTO_BROKER_LOG_OUTPUT=/log"}, []string{"--profiles-dir", "/p"}, `invalid value "/log" of the environment variable CRYPTO_BROKER_LOG_OUTPUT: expected one of stdout, stderr`},
		"a time without a unit":              {nil, []string{"--profiles-dir", "/p", "--shutdown-timeout", "10"}, `invalid argument "10" for "--shutdown-timeout" flag: expected a duration above 0 such as 500ms, 10s or 2m`},
		"no time between polls":              {nil, []string{"--profiles-dir", "/p", "--profiles-poll-interval", "0s"}, `invalid argument "0s" for "--profiles-poll-interval" flag: expected a duration above 0 such as 500ms, 10s or 2m`},
		"an empty name of a caller":          {nil, []string{"--profiles-dir", "/p", "--callers", "a,,b"}, `invalid argument "a,,b" for "--callers" flag: expected names separated by single commas`},
		"a caller that goes up":              {nil, []string{"--profiles-dir", "/p", "--callers", ".."}, `caller "..": expected the name of a container, at most 63 lower-case letters, digits and inner hyphens`},
		"profiles without a caller":          {nil, []string{"--profiles-dir", "/p", "--callers", "app", "--caller-profiles", "Default"}, `invalid argument "Default" for "--caller-profiles" flag: expected callers with their profiles such as app=Default,Signing;worker=Default`},
		"a caller without profiles":          {[]string{"CRYPTO_BROKER_CALLER_PROFILES=app="}, []string{"--profiles-dir", "/p"}, `invalid value "app=" of the environment variable CRYPTO_BROKER_CALLER_PROFILES: expected callers with their profiles such as app=Default,Signing;worker=Default`},
		"a caller with two lists":            {nil, []string{"--profiles-dir", "/p", "--caller-profiles", "app=A;app=B"}, `invalid argument "app=A;app=B" for "--caller-profiles" flag: expected callers with their profiles such as app=Default,Signing;worker=Default, each caller once; "app" is there twice`},
		"profiles without callers":           {nil, []string{"--profiles-dir", "/p", "--caller-profiles", "app=A"}, "--caller-profiles or CRYPTO_BROKER_CALLER_PROFILES says what callers may use, but no callers are named: expected --callers or CRYPTO_BROKER_CALLERS as well"},
		"a gateway without a token":          {nil, []string{"--profiles-dir", "/p", "--key-gateway", "g:1"}, `--key-gateway, --key-gateway-token and --key-gateway-authorities belong together: found "g:1", "" and "", expected all of them or none`},
		"a certificate without a gateway":    {nil, []string{"--profiles-dir", "/p", "--key-gateway-certificate", "/c"}, `--key-gateway-certificate is "/c" without --key-gateway, expected it only with a key gateway`},
		"a gateway without a host":           {nil, []string{"--profiles-dir", "/p", "--key-gateway", ":1"}, `invalid argument ":1" for "--key-gateway" flag: expected host:port such as gateway.example:8443`},
		"profiles of no caller":              {nil, []string{"--profiles-dir", "/p", "--callers", "app", "--caller-profiles", "web=A"}, `profiles of the caller "web": expected one of the broker's callers ["app"]`},
		"a socket path too long":             {nil, []string{"--profiles-dir", "/p", "--socket-dir", "/" + strings.Repeat("d", 100)}, "the path of the socket /" + strings.Repeat("d", 100) + "/crypto-broker-server.sock has 127 bytes, and the system allows at most 107: choose a shorter socket directory or caller name"},
		"memory that is too little":          {nil, []string{"--profiles-dir", "/p", "--memory-limit", "8Mi"}, `invalid argument "8Mi" for "--memory-limit" flag: expected a number of bytes of at least 16Mi, such as 134217728, 128Mi or 1GiB`},
		"memory that is no number":           {[]string{"CRYPTO_BROKER_MEMORY_LIMIT=plenty"}, []string{"--profiles-dir", "/p"}, `invalid value "plenty" of the environment variable CRYPTO_BROKER_MEMORY_LIMIT: expected a number of bytes of at least 16Mi, such as 134217728, 128Mi or 1GiB`},
		"an audit file too small":            {nil, []string{"--profiles-dir", "/p", "--audit-file-size", "1Ki"}, `invalid argument "1Ki" for "--audit-file-size" flag: expected a number of bytes of at least 64Ki, such as 134217728, 128Mi or 1GiB`},
		"no audit files":                     {nil, []string{"--profiles-dir", "/p", "--audit-files", "0"}, `invalid argument "0" for "--audit-files" flag: expected a number from 1 to 4294967295`},
		"records that are never on the disk": {nil, []string{"--profiles-dir", "/p", "--audit-sync", "never"}, `invalid argument "never" for "--audit-sync" flag: expected one of each, second`},
		"a collector of records with a path": {nil, []string{"--profiles-dir", "/p", "--audit-otlp-endpoint", "http://c/v1/logs"}, `invalid argument for "--audit-otlp-endpoint" flag: expected a URL of OTLP over gRPC such as https://collector.observability:4317, without path, user, query and fragment`},
		"records in two places":              {nil, []string{"--profiles-dir", "/p", "--audit-otlp-endpoint", "http://c", "--audit-file", "/f"}, `--audit-file and --audit-otlp-endpoint: found both, expected one of the two`},
		"authorities without TLS":            {[]string{"CRYPTO_BROKER_AUDIT_OTLP_AUTHORITIES=x"}, []string{"--profiles-dir", "/p", "--audit-otlp-endpoint", "http://c"}, `--audit-otlp-endpoint: found "http://c" together with certificates for the collector, expected a URL that begins with https://`},
		"authorities of no collector":        {nil, []string{"--profiles-dir", "/p", "--audit-otlp-certificate", "/f"}, `--audit-otlp-endpoint: found none together with certificates for the collector, expected its URL`},
		"a certificate without its key":      {nil, []string{"--profiles-dir", "/p", "--audit-otlp-endpoint", "https://c", "--audit-otlp-client-certificate", "/f"}, `--audit-otlp-client-certificate and --audit-otlp-client-key: found only one of the two, expected both or none`},
		"memory beyond all numbers":          {nil, []string{"--profiles-dir", "/p", "--memory-limit", "9223372036854775807Gi"}, `invalid argument "9223372036854775807Gi" for "--memory-limit" flag: expected a number of bytes of at least 16Mi, such as 134217728, 128Mi or 1GiB`},
		"an unknown environment":             {[]string{"CRYPTO_BROKER_APP_ENV=test"}, []string{"--profiles-dir", "/p"}, `invalid value "test" of the environment variable CRYPTO_BROKER_APP_ENV: expected one of prod, dev`},
		"no streams at all":                  {[]string{"CRYPTO_BROKER_GRPC_MAX_CONCURRENT_STREAMS=0"}, []string{"--profiles-dir", "/p"}, `invalid value "0" of the environment variable CRYPTO_BROKER_GRPC_MAX_CONCURRENT_STREAMS: expected a number from 1 to 4294967295`},
		"more streams than there are":        {nil, []string{"--profiles-dir", "/p", "--grpc-max-concurrent-streams", "4294967296"}, `invalid argument "4294967296" for "--grpc-max-concurrent-streams" flag: expected a number from 1 to 4294967295`},
		"a log level, variable":              {[]string{"CRYPTO_BROKER_LOG_LEVEL=loud"}, []string{"--profiles-dir", "/p"}, `invalid value "loud" of the environment variable CRYPTO_BROKER_LOG_LEVEL: expected one of debug, info, warn, error`},
		"a log format":                       {[]string{"CRYPTO_BROKER_LOG_FORMAT=xml"}, []string{"--profiles-dir", "/p"}, `invalid value "xml" of the environment variable CRYPTO_BROKER_LOG_FORMAT: expected one of json, text`},
		"neither yes nor no":                 {nil, []string{"--profiles-dir", "/p", "--require-fips=strictly"}, `invalid argument "strictly" for "--require-fips" flag: expected true or false`},
		"an unknown TLS provider":            {nil, []string{"--profiles-dir", "/p", "--tls-provider", "gnutls"}, `invalid argument "gnutls" for "--tls-provider" flag: expected one of go, openssl`},
		"neither yes nor no, version":        {[]string{"CRYPTO_BROKER_REQUIRE_FIPS=strictly"}, []string{"version"}, `invalid value "strictly" of the environment variable CRYPTO_BROKER_REQUIRE_FIPS: expected true or false`},
		"an argument of version":             {nil, []string{"version", "x"}, `version takes no arguments, found "x"`},
		"an argument of fips":                {nil, []string{"fips", "x"}, `fips takes no arguments, found "x"`},
		"a relative socket of health":        {nil, []string{"health", "--socket", "s"}, `invalid argument "s" for "--socket" flag: expected an absolute path`},
	} {
		t.Run(sentence, func(t *testing.T) {
			code, stdout, stderr := execute(t, test.env, test.args...)
			if want := "broker: " + test.want + " (see broker --help)\n"; code != 2 || stderr != want || stdout != "" {
				t.Errorf("got %d %q %q\nwant 2 %q", code, stdout, stderr, want)
			}
		})
	}
}

func TestHelpNamesEveryFlagAndItsVariable(t *testing.T) {
	code, stdout, stderr := execute(t, nil, "--help")
	if code != 0 || stderr != "" {
		t.Errorf("got %d %q", code, stderr)
	}
	for _, name := range []string{
		"profiles-dir", "profiles-poll-interval", "trusted-keys", "profiles-audience", "lowest-revision", "state-dir", "socket-dir", "callers", "caller-profiles", "shared-identity", "socket-group", "status-address", "shutdown-timeout", "memory-limit", "require-fips", "tls-provider", "development-service", "app-env", "grpc-max-concurrent-streams", "log-level", "log-format", "log-output",
	} {
		variable := "CRYPTO_BROKER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if !regexp.MustCompile("--"+name+"[ [\n]").MatchString(stdout) || !strings.Contains(stdout, "["+variable+"]") {
			t.Errorf("--help does not name --%s and %s", name, variable)
		}
	}
	for _, args := range [][]string{{"help"}, {"-h"}, {"serve", "--help"}} {
		if _, again, _ := execute(t, nil, args...); again != stdout {
			t.Errorf("%v prints something else than --help", args)
		}
	}
}

func TestHelpSaysWhatBecomesOfOtherVariables(t *testing.T) {
	code, stdout, _ := execute(t, nil, "--help")
	const want = "An unknown variable\nthat begins with CRYPTO_BROKER_ has no effect, and the log says so."
	if code != 0 || !strings.Contains(stdout, want) {
		t.Errorf("exit code %d, %q is not in\n%s", code, want, stdout)
	}
}
