// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

const kmip = "{type: kmip, endpoints: [kmip-1.example.com], credentials: {secretRef: {name: kmip-client}}}"

func provider(t *testing.T, namespace, name, spec string) *v1alpha1.KeyProvider {
	t.Helper()
	p := &v1alpha1.KeyProvider{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

// clusterProvider selects the namespaces with a label, or all of them.
func clusterProvider(t *testing.T, name, spec string, labels map[string]string) *v1alpha1.ClusterKeyProvider {
	t.Helper()
	p := &v1alpha1.ClusterKeyProvider{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.KeyProviderSpec = provider(t, "", name, spec).Spec
	if labels != nil {
		p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: labels}
	}
	return p
}

// keyProvidersWith returns a cluster with two namespaces, "shop" and "test", and the objects.
func keyProvidersWith(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	objects = append(objects, fixture.Namespace("shop", map[string]string{"environment": "production"}), fixture.Namespace("test", nil))
	return fake.NewClientBuilder().WithScheme(fixture.Scheme(t)).WithObjects(objects...).
		WithIndex(&v1alpha1.KeyProvider{}, "metadata.name", func(p client.Object) []string { return []string{p.GetName()} }).
		WithIndex(&v1alpha1.CryptoProfile{}, profileNameIndex, profileName).
		WithIndex(&v1alpha1.ClusterCryptoProfile{}, profileNameIndex, profileName).Build()
}

func keyProviderHandlers(t *testing.T, reader client.Reader) Validators {
	t.Helper()
	return Handlers(fixture.Scheme(t), reader, Options{OperatorNamespace: "crypto-broker-system", Live: reader})
}

var production = map[string]string{"environment": "production"}

func TestANameOfAKeyProviderMeansTheClustersWhereItSelectsTheNamespace(t *testing.T) {
	taken := []string{`the key provider is valid and will not be used: the name belongs to ClusterKeyProvider "hsm", which selects the namespace`}
	for sentence, test := range map[string]struct {
		existing []client.Object
		after    client.Object
		warnings []string
	}{
		"no other provider":                     {nil, provider(t, "shop", "hsm", kmip), nil},
		"a cluster provider of another name":    {[]client.Object{clusterProvider(t, "bao", kmip, nil)}, provider(t, "shop", "hsm", kmip), nil},
		"a cluster provider for all namespaces": {[]client.Object{clusterProvider(t, "hsm", kmip, nil)}, provider(t, "test", "hsm", kmip), taken},
		"a cluster provider for the namespace":  {[]client.Object{clusterProvider(t, "hsm", kmip, production)}, provider(t, "shop", "hsm", kmip), taken},
		"a cluster provider for others":         {[]client.Object{clusterProvider(t, "hsm", kmip, production)}, provider(t, "test", "hsm", kmip), nil},
		"a namespace without profiles": {nil, provider(t, "crypto-broker-system", "hsm", kmip), []string{
			`the key provider is valid and will not be used: the namespace "crypto-broker-system" never gets profiles`}},
		"a cluster provider over others": {
			[]client.Object{provider(t, "shop", "hsm", kmip), provider(t, "test", "hsm", kmip), provider(t, "shop", "bao", kmip), provider(t, "kube-system", "hsm", kmip)},
			clusterProvider(t, "hsm", kmip, production),
			[]string{`KeyProvider "hsm" of namespace "shop" will not be used: a ClusterKeyProvider counts before it`}},
	} {
		handlers := keyProviderHandlers(t, keyProvidersWith(t, test.existing...))
		handler := handlers.KeyProvider
		if _, is := test.after.(*v1alpha1.ClusterKeyProvider); is {
			handler = handlers.ClusterKeyProvider
		}
		if response := handler.Handle(t.Context(), change(t, nil, test.after)); !response.Allowed || !slices.Equal(response.Warnings, test.warnings) {
			t.Errorf("%s: answered %v with the warnings %q, expected %q", sentence, response.Result, response.Warnings, test.warnings)
		}
	}
}

func TestAProfileIsWarnedOfKeysThatItCannotUse(t *testing.T) {
	restricted := strings.Replace(kmip, "{type", "{allowedProfiles: [payments], type", 1)
	const absent = `keys of the provider "hsm" cannot be used: found no KeyProvider "hsm" in the namespace and no ClusterKeyProvider that selects it`
	for sentence, test := range map[string]struct {
		existing []client.Object
		warning  string
	}{
		"no provider":                             {nil, absent},
		"a provider of the namespace":             {[]client.Object{provider(t, "shop", "hsm", kmip)}, ""},
		"a provider of another namespace":         {[]client.Object{provider(t, "test", "hsm", kmip)}, absent},
		"a provider for other profiles":           {[]client.Object{provider(t, "shop", "hsm", restricted)}, `keys of KeyProvider "hsm" cannot be used: its allowedProfiles do not have "orders"`},
		"a cluster provider":                      {[]client.Object{clusterProvider(t, "hsm", kmip, production)}, ""},
		"a cluster provider for other namespaces": {[]client.Object{clusterProvider(t, "hsm", kmip, map[string]string{"environment": "test"})}, absent},
		"a cluster provider for other profiles": {[]client.Object{clusterProvider(t, "hsm", restricted, nil), provider(t, "shop", "hsm", kmip)},
			`keys of ClusterKeyProvider "hsm" cannot be used: its allowedProfiles do not have "orders"`},
	} {
		profile := fixture.ProfileNamed("orders", func(p *v1alpha1.CryptoProfile) {
			p.Namespace = "shop"
			p.Spec = v1alpha1.ProfileSpec{API: v1alpha1.Operations{SignData: &v1alpha1.SignData{SignAlg: "ed25519", KeyIDs: []v1alpha1.KeyID{{ID: "hsm/a"}, {ID: "hsm/b"}, {ID: "local"}}}}}
		})
		response := keyProviderHandlers(t, keyProvidersWith(t, test.existing...)).CryptoProfile.Handle(t.Context(), change(t, nil, profile))
		found := slices.DeleteFunc(slices.Clone(response.Warnings), func(w string) bool { return !strings.HasPrefix(w, "keys of") })
		if !response.Allowed || strings.Join(found, "\n") != test.warning {
			t.Errorf("%s: answered %v with the warnings %q, expected %q", sentence, response.Result, found, test.warning)
		}
	}
}

func TestAClusterProfileIsWarnedWhereNoClusterKeyProviderHasItsKeys(t *testing.T) {
	profile := fixture.ClusterProfileNamed("orders", func(p *v1alpha1.ClusterCryptoProfile) {
		p.Spec.API = v1alpha1.Operations{SignData: &v1alpha1.SignData{SignAlg: "ed25519", KeyIDs: []v1alpha1.KeyID{{ID: "hsm/a"}}}}
	})
	const want = `found no ClusterKeyProvider "hsm": keys of this provider can only be used in namespaces with a KeyProvider of this name`
	for _, test := range []struct {
		existing []client.Object
		warned   bool
	}{{nil, true}, {[]client.Object{clusterProvider(t, "hsm", kmip, nil)}, false}} {
		response := keyProviderHandlers(t, keyProvidersWith(t, test.existing...)).ClusterCryptoProfile.Handle(t.Context(), change(t, nil, profile))
		if !response.Allowed || slices.Contains(response.Warnings, want) != test.warned {
			t.Errorf("answered %v with the warnings %q", response.Result, response.Warnings)
		}
	}
}

func TestABadKeyProviderIsRefusedWithTheFieldsNamed(t *testing.T) {
	handlers := keyProviderHandlers(t, keyProvidersWith(t))
	bad := provider(t, "shop", "hsm", "{type: kmip, endpoints: [a, a], cacheTime: 2m}")
	response := handlers.KeyProvider.Handle(t.Context(), change(t, nil, bad))
	if response.Allowed || response.Result.Code != http.StatusUnprocessableEntity || !strings.Contains(response.Result.Message, "spec.endpoints[1]") || !strings.Contains(response.Result.Message, "spec.cacheTime") {
		t.Errorf("answered %v", response.Result)
	}
	selecting := clusterProvider(t, "hsm", kmip, map[string]string{"-": "a"})
	if response := handlers.ClusterKeyProvider.Handle(t.Context(), change(t, nil, selecting)); response.Allowed || !strings.Contains(response.Result.Message, "spec.namespaceSelector") {
		t.Errorf("answered %v", response.Result)
	}
}

func TestAChangeOfWhereKeysComeFromIsLoggedWithItsAuthorAndWarnedOf(t *testing.T) {
	before := provider(t, "shop", "hsm", kmip)
	moved := provider(t, "shop", "hsm", strings.Replace(kmip, "kmip-1", "kmip-2", 1))
	renewed := provider(t, "shop", "hsm", strings.Replace(kmip, "kmip-client", "kmip-client-2", 1))
	labelled := before.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	for sentence, test := range map[string]struct {
		after           *v1alpha1.KeyProvider
		dry             bool
		logged, warning string
	}{
		"other servers":          {moved, false, `"fields"=["endpoints"] "endpointsBefore"=["kmip-1.example.com"] "endpoints"=["kmip-2.example.com"]`, "spec.endpoints changed, so keys come from elsewhere"},
		"other servers, dry run": {moved, true, "", "spec.endpoints changed, so keys come from elsewhere"},
		"another Secret":         {renewed, false, `"fields"=["credentials"]`, ""},
		"no change of the spec":  {labelled, false, "", ""},
	} {
		var text bytes.Buffer
		logger := funcr.New(func(_, line string) { text.WriteString(line) }, funcr.Options{})
		request := change(t, before, test.after)
		request.UserInfo.Username, request.DryRun = "jane", &test.dry
		response := keyProviderHandlers(t, keyProvidersWith(t)).KeyProvider.Handle(log.IntoContext(admission.NewContextWithRequest(t.Context(), request), logger), request)
		if found := text.String(); !response.Allowed || (found == "") != (test.logged == "") || !strings.Contains(found, test.logged) || test.logged != "" && !strings.Contains(found, `"by"="jane"`) {
			t.Errorf("%s: answered %v and logged %q, expected %q", sentence, response.Result, found, test.logged)
		}
		if found := strings.Join(response.Warnings, "\n"); (found == "") != (test.warning == "") || !strings.HasPrefix(found, test.warning) {
			t.Errorf("%s: warned %q, expected %q", sentence, found, test.warning)
		}
	}
}
