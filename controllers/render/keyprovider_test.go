// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// allOfAKeyProvider returns a spec with a value for each field, of all types at once.
const allOfAKeyProvider = `
type: kmip
endpoints: [kmip-1.example.com, "kmip-2.example.com:5697"]
serverName: kmip.example.com
credentials: {secretRef: {name: kmip-client}}
cacheTime: 30s
allowedProfiles: [orders]
connections: {min: 2, max: 16, lifetime: 1h, idleTime: 90s, connectTimeout: 500ms, requestTimeout: 3s, roundRobin: true}
openbao: {engine: kv, mount: secret, namespace: team, role: gateway}
awsKMS: {region: eu-central-1}
pkcs11: {module: /p11.so, tokenLabel: orders}
`

func keyProvider(t *testing.T, text string) *v1alpha1.KeyProviderSpec {
	t.Helper()
	var spec v1alpha1.KeyProviderSpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	return &spec
}

// notSet returns the fields of a struct, and of the structs in it, that have no value.
func notSet(at string, v reflect.Value) (empty []string) {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.IsZero() {
		return []string{at}
	}
	if v.Kind() == reflect.Struct {
		for field, value := range v.Fields() {
			empty = append(empty, notSet(at+"."+field.Name, value)...)
		}
	}
	return empty
}

func TestEveryFieldOfAKeyProviderComesToItsConfiguration(t *testing.T) {
	spec := keyProvider(t, allOfAKeyProvider)
	if empty := notSet("spec", reflect.ValueOf(spec)); len(empty) > 0 {
		t.Errorf("the resource of this test has no value for %q", empty)
	}
	config, problems := render.KeyProvider("hsm", spec)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if config.ActsAsProgram {
		t.Error("a resource permits itself to use what the gateway itself has")
	}
	if empty := notSet("Config", reflect.ValueOf(config)); !slices.Equal(empty, []string{"Config.ActsAsProgram"}) {
		t.Errorf("the configuration has no value for %q, expected one for all fields but ActsAsProgram", empty)
	}
	want := &providers.Config{
		Name: "hsm", Type: "kmip", Endpoints: []string{"kmip-1.example.com", "kmip-2.example.com:5697"}, ServerName: "kmip.example.com", CacheTime: 30 * time.Second,
		Connections: providers.Connections{
			Min: 2, Max: 16, Lifetime: time.Hour, IdleTime: 90 * time.Second, ConnectTimeout: 500 * time.Millisecond, RequestTimeout: 3 * time.Second, RoundRobin: true,
		},
		OpenBao: &providers.OpenBaoSettings{Engine: "kv", Mount: "secret", Namespace: "team", Role: "gateway"},
		AWSKMS:  &providers.AWSKMSSettings{Region: "eu-central-1"},
		PKCS11:  &providers.PKCS11Settings{Module: "/p11.so", TokenLabel: "orders"},
	}
	if difference := cmp.Diff(want, config); difference != "" {
		t.Error(difference)
	}
}

func TestTheCacheOfAKeyProviderIsOffWithZeroAndHasItsDefaultWithNothing(t *testing.T) {
	for text, want := range map[string]time.Duration{"cacheTime: 0s": 0, "{}": time.Minute, "cacheTime: 20s": 20 * time.Second} {
		config, _ := render.KeyProvider("hsm", keyProvider(t, text))
		if found := config.CacheFor(); found != want {
			t.Errorf("%s: keys are used for %s, expected %s", text, found, want)
		}
	}
}

func TestProblemsOfAKeyProviderNameTheFieldsOfTheResource(t *testing.T) {
	for text, want := range map[string][]string{
		"{type: kmip, endpoints: [a, a]}":                            {"spec.endpoints[1]"},
		"{type: kmip, endpoints: [a], cacheTime: 2m}":                {"spec.cacheTime"},
		"{type: kmip, endpoints: [a], cacheTime: soon}":              {"spec.cacheTime"},
		"{type: kmip, endpoints: [a], connections: {max: 65}}":       {"spec.connections.max"},
		"{type: kmip, endpoints: [a], connections: {idleTime: 25h}}": {"spec.connections.idleTime"},
		"{type: aws-kms}": {"spec.awsKMS.region"},
		"{type: pkcs11}":  {"spec.pkcs11.module", "spec.pkcs11.tokenLabel"},
		"{type: openbao, endpoints: [a], openbao: {engine: pki}, pkcs11: {module: /a, tokenLabel: a}}": {"spec.pkcs11", "spec.openbao.engine"},
		"{type: kmip, endpoints: [a]}": nil,
	} {
		var found []string
		for _, problem := range render.ValidateKeyProvider("hsm", keyProvider(t, text)) {
			found = append(found, problem.Field)
		}
		if !slices.Equal(found, want) {
			t.Errorf("%s: found problems of %q, expected %q", text, found, want)
		}
	}
	if found := render.ValidateKeyProvider("HSM", keyProvider(t, "{type: kmip, endpoints: [a]}")); len(found) != 1 || found[0].Field != "metadata.name" {
		t.Errorf("found %v, expected a problem of metadata.name", found)
	}
}

func TestAProfileNamesTheProvidersOfItsKeys(t *testing.T) {
	var spec v1alpha1.ProfileSpec
	if err := yaml.UnmarshalStrict([]byte(`
api:
  signData: {signAlg: ed25519, keyIds: [{id: hsm/a}, {id: hsm/b/c}, {id: local}]}
  encryptData: {encryptAlg: aes-gcm, keySize: 256, keyIds: [{id: bao/x}, {id: /rooted}]}
`), &spec); err != nil {
		t.Fatal(err)
	}
	if found := render.KeyProviderNames(&spec); !slices.Equal(found, []string{"bao", "hsm"}) {
		t.Errorf("found %q", found)
	}
}

func TestAKeyProviderIsForTheProfilesThatItNames(t *testing.T) {
	if !render.MayUse(keyProvider(t, "{}"), "any") {
		t.Error("a provider without allowedProfiles is not for every profile")
	}
	some := keyProvider(t, "allowedProfiles: [orders]")
	if !render.MayUse(some, "orders") || render.MayUse(some, "Orders") {
		t.Error("a provider with allowedProfiles is not for exactly these")
	}
}
