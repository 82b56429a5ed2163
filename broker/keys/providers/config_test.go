// SPDX-License-Identifier: Apache-2.0

package providers_test

import (
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
)

func TestAFileOfProvidersIsRefusedWithItsReason(t *testing.T) {
	for sentence, test := range map[string]struct{ file, want string }{
		"no name":                          {"Providers: [{Type: kmip, Endpoints: [a]}]", `Providers[0].Name is "", expected 1 to 32 lower-case letters, digits and hyphens, with a letter or digit at both ends`},
		"a name that is a path":            {"Providers: [{Name: ../etc, Type: kmip, Endpoints: [a]}]", `Providers[0].Name is "../etc", expected`},
		"a name twice":                     {"Providers: [{Name: a, Type: kmip, Endpoints: [a]}, {Name: a, Type: kmip, Endpoints: [b]}]", `Providers[1].Name is "a", which an earlier provider has`},
		"an unknown type":                  {"Providers: [{Name: a, Type: hsm, Endpoints: [a]}]", `Providers[0].Type is "hsm", expected one of kmip, openbao, aws-kms, pkcs11`},
		"no endpoint":                      {"Providers: [{Name: a, Type: kmip}]", `Providers[0].Endpoints is empty, expected at least one server`},
		"an endpoint twice":                {"Providers: [{Name: a, Type: kmip, Endpoints: [x, x]}]", `Providers[0].Endpoints[1] is "x", which is already in the list`},
		"an endpoint with a space":         {"Providers: [{Name: a, Type: kmip, Endpoints: ['x y']}]", `Providers[0].Endpoints[0] is "x y", expected the address of a server in printable ASCII without spaces`},
		"too many connections":             {"Providers: [{Name: a, Type: kmip, Endpoints: [x], Connections: {Max: 65}}]", `Providers[0].Connections.Max is 65, expected 1 to 64`},
		"more connections kept than made":  {"Providers: [{Name: a, Type: kmip, Endpoints: [x], Connections: {Min: 3, Max: 2}}]", `Providers[0].Connections.Min is 3, expected at most 2, which is the maximum`},
		"a negative duration":              {"Providers: [{Name: a, Type: kmip, Endpoints: [x], Connections: {RequestTimeout: -1s}}]", `Providers[0].Connections.RequestTimeout is -1s, expected more than 0 and at most 24h`},
		"keys that are used for too long":  {"Providers: [{Name: a, Type: kmip, Endpoints: [x], CacheTime: 2m}]", `Providers[0].CacheTime is 2m0s, expected at most 1m0s`},
		"settings of another type":         {"Providers: [{Name: a, Type: kmip, Endpoints: [x], OpenBao: {Engine: kv}}]", `Providers[0].OpenBao has settings of the type openbao, expected none because the type is "kmip"`},
		"an engine that does not exist":    {"Providers: [{Name: a, Type: openbao, Endpoints: [x], OpenBao: {Engine: pki}}]", `Providers[0].OpenBao.Engine is "pki", expected kv or transit`},
		"no region":                        {"Providers: [{Name: a, Type: aws-kms}]", `Providers[0].AWSKMS.Region is empty, expected a region, such as eu-central-1`},
		"a module that is no path":         {"Providers: [{Name: a, Type: pkcs11, PKCS11: {Module: hsm.so, TokenLabel: t}}]", `Providers[0].PKCS11.Module is not set, expected the absolute path of a library`},
		"endpoints of a device":            {"Providers: [{Name: a, Type: pkcs11, Endpoints: [x], PKCS11: {Module: /hsm.so, TokenLabel: t}}]", `Providers[0].Endpoints has 1 entries, expected none for the type pkcs11`},
		"a misspelt field":                 {"Providers:\n- {Name: a, Type: kmip, Endpoint: [x]}", `line 2: found the unknown field Endpoint`},
		"a credential":                     {"Providers: [{Name: a, Type: kmip, Endpoints: [x], Token: secret}]", `found the unknown field Token`},
		"what only callers set":            {"Providers: [{Name: a, Type: aws-kms, AWSKMS: {Region: r}, ActsAsProgram: true}]", `found the unknown field ActsAsProgram`},
		"two documents":                    {"Providers: []\n---\nProviders: []", `has more than one document, expected one`},
		"something that is no map of YAML": {"[", `is not a file of key providers`},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := providers.Parse([]byte(test.file))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestAFileOfProvidersNamesAllProblemsAtOnce(t *testing.T) {
	_, err := providers.Parse([]byte("Providers: [{Name: A, Type: kmip}, {Name: b, Type: aws-kms}]"))
	for _, want := range []string{"Providers[0].Name", "Providers[0].Endpoints", "Providers[1].AWSKMS.Region"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}
