// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/regopolicy"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// keyAccessObject returns an object of a namespace.
func keyAccessObject(t *testing.T, kind, namespace, spec string) runtime.RawExtension {
	t.Helper()
	var content any
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": "first", "namespace": namespace}, "spec": content,
	})
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: text}
}

func TestPoliciesAndPeersOfAKeyAccessServiceAreRefusedWithTheFieldThatIsWrong(t *testing.T) {
	const own = "crypto-broker-system"
	for name, c := range map[string]struct {
		kind, namespace, spec string
		refusal, warning      string
	}{
		"a good policy":                 {"KeyAccessPolicy", own, "{allow: [{name: a, when: caller.bound}]}", "", ""},
		"a policy of another namespace": {"KeyAccessPolicy", "shop", "{allow: [{name: a, when: caller.bound}]}", "", `of the namespace "crypto-broker-system" only`},
		"a variable that is not there": {"KeyAccessPolicy", own, "{allow: [{name: a, when: caller.bound}, {name: b, when: 'true || caller.isuer == ''x'''}]}",
			`spec.allow[1].when: Invalid value: line 1, column 9 of the expression: undeclared reference to 'caller'`, ""},
		"a rule that is no bool":           {"KeyAccessPolicy", own, "{deny: [{name: a, when: now}]}", `spec.deny[0].when: Invalid value: line 1, column 1 of the expression: found the type google.protobuf.Timestamp, expected bool`, ""},
		"an expression that does not end":  {"KeyAccessPolicy", own, "{appliesTo: 'size(', deny: [{name: a, when: caller.bound}]}", `spec.appliesTo: Invalid value: line 1, column 6 of the expression: Syntax error`, ""},
		"a module where Rego is off":       {"KeyAccessPolicy", own, "{rego: 'package keyaccess'}", "spec.rego: Invalid value: found a module in Rego, which is off: the chart's value keyAccess.rego turns it on", ""},
		"a good peer":                      {"KeyAccessPeer", own, "{url: 'https://b.example', timeout: 2s, routes: ['https://c.example'], issuers: [{url: 'https://i.example', audiences: [b]}]}", "", ""},
		"a peer that is not in lower case": {"KeyAccessPeer", own, "{url: 'https://B.example'}", `spec.url: Invalid value: found the URL "https://B.example", expected one in normal form`, ""},
		"a route to the peer itself":       {"KeyAccessPeer", own, "{url: 'https://b.example', routes: ['https://b.example']}", `spec.routes[0]: Invalid value: found the peer itself`, ""},
		"authorities without a certificate": {"KeyAccessPeer", own, "{url: 'https://b.example', authorities: none, issuers: [{url: 'https://i.example', audiences: [b], authorities: none}]}",
			`[spec.authorities: Invalid value: found no certificate, expected PEM with the authorities of the servers, spec.issuers[0].authorities: Invalid value: found no certificate`, ""},
		"an issuer without a host": {"KeyAccessPeer", own, "{url: 'https://b.example', issuers: [{url: 'https:///x', audiences: [b]}]}", `spec.issuers[0].url: Invalid value: expected a URL`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			handlers := keyProviderHandlers(t, keyProvidersWith(t))
			handler := handlers.KeyAccessPolicy
			if c.kind == "KeyAccessPeer" {
				handler = handlers.KeyAccessPeer
			}
			response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Kind: metav1.GroupVersionKind{Kind: c.kind}, Namespace: c.namespace, Operation: admissionv1.Create, Object: keyAccessObject(t, c.kind, c.namespace, c.spec),
			}})
			if response.Allowed != (c.refusal == "") || !response.Allowed && !strings.Contains(response.Result.Message, c.refusal) {
				t.Errorf("found %t and %+v, expected the refusal %q", response.Allowed, response.Result, c.refusal)
			}
			if found := strings.Join(response.Warnings, " "); !strings.Contains(found, c.warning) || c.warning == "" && found != "" {
				t.Errorf("found the warnings %q, expected %q", found, c.warning)
			}
		})
	}
}

func TestALabelOfAWrongPolicyCanBeChanged(t *testing.T) {
	handler := keyProviderHandlers(t, keyProvidersWith(t)).KeyAccessPolicy
	const wrong, worse = "{allow: [{name: a, when: x}]}", "{allow: [{name: a, when: y}]}"
	for spec, allowed := range map[string]bool{wrong: true, worse: false} {
		response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Update, Object: keyAccessObject(t, "KeyAccessPolicy", "shop", spec), OldObject: keyAccessObject(t, "KeyAccessPolicy", "shop", wrong),
		}})
		if response.Allowed != allowed {
			t.Errorf("found %t for a change to %s, expected %t", response.Allowed, spec, allowed)
		}
	}
}

func TestPoliciesInRegoAreCompiledWhereTheyArePermitted(t *testing.T) {
	const own = "crypto-broker-system"
	check := func(_ context.Context, module string) (problems []string, err error) {
		if strings.Contains(module, "unchecked") {
			return nil, errors.New("gateway rego-check did not answer")
		}
		_, err = regopolicy.Compile(module)
		for _, problem := range accesspolicy.Problems(err) {
			problems = append(problems, problem.Error())
		}
		return problems, nil
	}
	handler := Handlers(fixture.Scheme(t), keyProvidersWith(t), Options{OperatorNamespace: own, KeyAccessModules: check}).KeyAccessPolicy
	for name, c := range map[string]struct{ namespace, module, refusal string }{
		"a good module":         {own, "allow if input.caller.bound", ""},
		"a wrong module":        {own, "allow if input.caller.isuer == 1", "spec.rego: Invalid value: line 2, column 10 of the module: undefined ref: input.caller.isuer"},
		"a call to the network": {own, "allow if http.send({})", "spec.rego: Invalid value: line 2, column 10 of the module: undefined function http.send"},
		"two mistakes":          {own, "allow if {\\n  input.x\\n  input.y\\n}", "[spec.rego: Invalid value: line 3, column 3 of the module: undefined ref: input.x, spec.rego: Invalid value: line 4, column 3"},
		"nobody who checks":     {own, "unchecked", "spec.rego: the module was not checked, try again: gateway rego-check did not answer"},
		"another namespace":     {"shop", "allow if input.caller.bound", `spec.rego: Forbidden: found a module in Rego outside of the namespace "crypto-broker-system" of the key access service`},
	} {
		response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Kind: metav1.GroupVersionKind{Kind: "KeyAccessPolicy"}, Namespace: c.namespace, Operation: admissionv1.Create,
			Object: keyAccessObject(t, "KeyAccessPolicy", c.namespace, `{rego: "package keyaccess\n`+c.module+`"}`),
		}})
		if response.Allowed != (c.refusal == "") || !response.Allowed && !strings.Contains(response.Result.Message, c.refusal) {
			t.Errorf("%s: found %t and %+v, expected the refusal %q", name, response.Allowed, response.Result, c.refusal)
		}
	}
}
