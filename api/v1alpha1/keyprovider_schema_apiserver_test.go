// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package v1alpha1_test

import (
	"strings"
	"testing"
)

// with adds lines to a key provider of type kmip that is valid.
func with(lines ...string) string {
	return "type: kmip\nendpoints: [kmip-1.example.com]\ncredentials: {secretRef: {name: kmip-client}}\n" + strings.Join(lines, "\n")
}

func TestTheSchemaOfKeyProviders(t *testing.T) {
	const secret = ", credentials: {secretRef: {name: client}}"
	both, namespaced, cluster := []string{"KeyProvider", "ClusterKeyProvider"}, []string{"KeyProvider"}, []string{"ClusterKeyProvider"}
	for sentence, test := range map[string]struct {
		kinds   []string
		spec    string
		refusal string // "" when the API server must accept
	}{
		"accepts every field": {both, with(
			"serverName: kmip.example.com", "cacheTime: 0s", "allowedProfiles: [orders, FIPS-140-3-256bit]",
			"connections: {min: 2, max: 16, lifetime: 1h30m, idleTime: 90s, connectTimeout: 500ms, requestTimeout: 1.5s, roundRobin: true}"), ""},
		"accepts OpenBao with a token":                          {both, `{type: openbao, endpoints: ["https://bao:8200"], openbao: {engine: kv, mount: secret, namespace: a}` + secret + `}`, ""},
		"accepts AWS KMS with credentials":                      {both, `{type: aws-kms, awsKMS: {region: eu-central-1}` + secret + `}`, ""},
		"accepts the namespaces of its profile":                 {cluster, with("namespaceSelector: {matchLabels: {environment: production}}"), ""},
		"accepts what acts as the gateway only for the cluster": {cluster, `{type: aws-kms, awsKMS: {region: eu-central-1}}`, ""},
		"accepts a role only for the cluster":                   {cluster, `{type: openbao, endpoints: ["https://bao:8200"], openbao: {role: gateway}}`, ""},
		"accepts a device only for the cluster":                 {cluster, `{type: pkcs11, pkcs11: {module: /usr/lib/p11.so, tokenLabel: a}` + secret + `}`, ""},

		"refuses the gateway's identity at AWS for a namespace":     {namespaced, `{type: aws-kms, awsKMS: {region: eu-central-1}}`, `without credentials the key gateway would use its own identity`},
		"refuses the gateway's identity at OpenBao for a namespace": {namespaced, `{type: openbao, endpoints: ["https://bao:8200"], openbao: {role: gateway}}`, `openbao.role logs in as the key gateway itself`},
		"refuses to load a library for a namespace":                 {namespaced, `{type: pkcs11, pkcs11: {module: /usr/lib/p11.so, tokenLabel: a}` + secret + `}`, `loads a library into the key gateway`},
		"refuses a selector of namespaces in a namespace":           {namespaced, with("namespaceSelector: {}"), `unknown field "spec.namespaceSelector"`},

		"refuses a type that does not exist":               {both, `{type: vault, endpoints: [a]` + secret + `}`, `spec.type: Unsupported value: "vault"`},
		"refuses no server":                                {both, `{type: kmip` + secret + `}`, `endpoints is missing`},
		"refuses an empty list of servers":                 {both, `{type: kmip, endpoints: []` + secret + `}`, `spec.endpoints`},
		"refuses 17 servers":                               {both, `{type: kmip, endpoints: [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q]` + secret + `}`, `must have at most 16 items`},
		"refuses a server twice":                           {both, `{type: kmip, endpoints: [a, b, a]` + secret + `}`, `an endpoint is in the list twice`},
		"refuses a server with a space":                    {both, `{type: kmip, endpoints: ["a b"]` + secret + `}`, `spec.endpoints[0]`},
		"refuses a URL for KMIP":                           {both, `{type: kmip, endpoints: ["https://a"]` + secret + `}`, `host or host:port`},
		"refuses a token in the clear":                     {both, `{type: openbao, endpoints: ["http://bao:8200"]` + secret + `}`, `URLs that begin with https://`},
		"refuses servers of a device":                      {cluster, `{type: pkcs11, endpoints: [a], pkcs11: {module: /p11.so, tokenLabel: a}` + secret + `}`, `endpoints is not for type pkcs11`},
		"refuses no credentials":                           {both, `{type: kmip, endpoints: [a]}`, `credentials is missing`},
		"refuses OpenBao without credentials and role":     {both, `{type: openbao, endpoints: ["https://a"]}`, `credentials is missing`},
		"refuses settings of another type":                 {both, with("openbao: {engine: kv}"), `openbao is only for type openbao`},
		"refuses AWS KMS without a region":                 {both, `{type: aws-kms` + secret + `}`, `awsKMS is required`},
		"refuses a device without its library":             {cluster, `{type: pkcs11` + secret + `}`, `pkcs11 is required`},
		"refuses a library by a relative path":             {cluster, `{type: pkcs11, pkcs11: {module: p11.so, tokenLabel: a}` + secret + `}`, `spec.pkcs11.module`},
		"refuses another engine":                           {both, `{type: openbao, endpoints: ["https://a"], openbao: {engine: pki}` + secret + `}`, `spec.openbao.engine`},
		"refuses to keep keys for more than a minute":      {both, with("cacheTime: 61s"), `expected at most 1m`},
		"refuses a negative duration":                      {both, with("cacheTime: -1s"), `spec.cacheTime`},
		"refuses a timeout of nothing":                     {both, with("connections: {requestTimeout: 0s}"), `expected more than 0s and at most 24h`},
		"refuses a duration without a unit":                {both, with(`connections: {requestTimeout: "10"}`), `spec.connections.requestTimeout`},
		"refuses a lifetime of more than a day":            {both, with("connections: {lifetime: 25h}"), `expected more than 0s and at most 24h`},
		"refuses 65 connections":                           {both, with("connections: {max: 65}"), `spec.connections.max`},
		"refuses to keep more connections than allowed":    {both, with("connections: {min: 4, max: 3}"), `min is larger than max`},
		"refuses to keep more connections than by default": {both, with("connections: {min: 9}"), `min is larger than max, which is 8 by default`},
		"refuses an empty list of profiles":                {both, with("allowedProfiles: []"), `spec.allowedProfiles`},
		"refuses a profile twice":                          {both, with("allowedProfiles: [a, a]"), `spec.allowedProfiles[1]: Duplicate value`},
		"refuses the name of a Secret with a slash":        {both, "type: kmip\nendpoints: [a]\ncredentials: {secretRef: {name: other/client}}", `spec.credentials.secretRef.name`},
	} {
		for _, kind := range test.kinds {
			t.Run(sentence+" in a "+kind, func(t *testing.T) { expectAnswer(t, create(t, kind, "hsm", test.spec), test.refusal) })
		}
	}
}

func TestAKeyProviderHasANameThatFitsBeforeTheSlash(t *testing.T) {
	for name, refusal := range map[string]string{
		strings.Repeat("a", 32): "", strings.Repeat("a", 33): "at most 32 bytes and no dot", "hsm.example": "at most 32 bytes and no dot",
	} {
		for _, kind := range []string{"KeyProvider", "ClusterKeyProvider"} {
			expectAnswer(t, create(t, kind, name, with()), refusal)
		}
	}
}

// expectAnswer checks that the API server accepted an object, or refused it with the expected message.
func expectAnswer(t *testing.T, err error, refusal string) {
	t.Helper()
	switch {
	case refusal == "" && err != nil:
		t.Fatalf("refused: %v", err)
	case refusal != "" && err == nil:
		t.Fatalf("accepted, expected a refusal with %q", refusal)
	case refusal != "" && !strings.Contains(err.Error(), refusal):
		t.Fatalf("refused with\n%v\nexpected\n%s", err, refusal)
	}
}
