// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

func apiServerWith(t testing.TB, objects ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(fixture.Scheme(t)).WithObjects(objects...).
		WithIndex(&v1alpha1.CryptoProfile{}, profileNameIndex, profileName).
		WithIndex(&v1alpha1.ClusterCryptoProfile{}, profileNameIndex, profileName).Build()
}

func validatorsWith(t *testing.T, reader client.Reader) (namespaced, cluster admission.Handler) {
	t.Helper()
	scheme := fixture.Scheme(t)
	return counted(admission.WithValidator(scheme, newCryptoProfileValidator(reader, keysOf(reader))).Handler),
		counted(admission.WithValidator(scheme, newClusterCryptoProfileValidator(reader, keysOf(reader))).Handler)
}

// keysOf reads everything from one reader.
func keysOf(reader client.Reader) *keyProviders {
	return &keyProviders{live: reader, namespaces: reader, operatorNamespace: "crypto-broker-system"}
}

// asking returns a request for a change from before, which may be nil, to after.
func change(t *testing.T, before, after client.Object) admission.Request {
	t.Helper()
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: after.GetNamespace(), Name: after.GetName(),
		Object: runtime.RawExtension{Raw: fixture.JSON(t, after)},
	}}
	if before != nil {
		request.Operation = admissionv1.Update
		request.OldObject = runtime.RawExtension{Raw: fixture.JSON(t, before)}
	}
	return request
}

func TestABadProfileIsRefusedWithTheFieldsNamed(t *testing.T) {
	tests := map[string]struct {
		spec   string
		fields []string
	}{
		"an algorithm that does not exist": {
			spec:   `{api: {hashData: {hashAlg: md5}}}`,
			fields: []string{"spec.api.hashData.hashAlg"},
		},
		"several fields at once": {
			spec: `
api:
  hashData: {hashAlg: md5}
  signCertificate:
    signAlg: dsa
    hashAlg: sha-512
    validity: {validNotBeforeOffset: -1h, validNotAfterOffset: soon}
    keyConstraints:
      subject: {ecdsa: {minKeySize: 256, maxKeySize: 521}}
      issuer: {ecdsa: {minKeySize: 384, maxKeySize: 521}}
    keyUsage: [digitalSignature, everything]
`,
			fields: []string{
				"spec.api.hashData.hashAlg", "spec.api.signCertificate.signAlg",
				"spec.api.signCertificate.validity.validNotAfterOffset", "spec.api.signCertificate.keyUsage[1]",
			},
		},
		"no operation": {spec: `{api: {}}`, fields: []string{"spec.api"}},
	}
	server := apiServerWith(t, fixture.Namespace("shop", nil))
	namespaced, cluster := validatorsWith(t, server)
	for name, test := range tests {
		profile, clusterProfile := fixture.ProfileNamed("bad"), fixture.ClusterProfileNamed("bad")
		profile.Spec, clusterProfile.Spec.ProfileSpec = v1alpha1.ProfileSpec{}, v1alpha1.ProfileSpec{}
		if err := errors.Join(yaml.UnmarshalStrict([]byte(test.spec), &profile.Spec), yaml.UnmarshalStrict([]byte(test.spec), &clusterProfile.Spec)); err != nil {
			t.Fatal(err)
		}
		for kind, response := range map[string]admission.Response{
			"CryptoProfile":        namespaced.Handle(t.Context(), change(t, nil, profile)),
			"ClusterCryptoProfile": cluster.Handle(t.Context(), change(t, nil, clusterProfile)),
		} {
			t.Run(name+" in a "+kind, func(t *testing.T) {
				if response.Allowed || response.Result.Code != http.StatusUnprocessableEntity || response.Result.Reason != metav1.StatusReasonInvalid {
					t.Fatalf("answered %v, expected 422 Invalid", response.Result)
				}
				if details := response.Result.Details; details.Kind != kind || details.Group != "cryptobroker.io" || details.Name != "bad" {
					t.Errorf("found the details %v", details)
				}
				var fields []string
				for _, cause := range response.Result.Details.Causes {
					fields = append(fields, cause.Field)
				}
				slices.Sort(fields)
				slices.Sort(test.fields)
				if diff := cmp.Diff(test.fields, fields); diff != "" {
					t.Errorf("other fields than expected (-want +found):\n%s\n%s", diff, response.Result.Message)
				}
			})
		}
	}
}

func TestASelectorThatCannotBeReadIsRefused(t *testing.T) {
	_, cluster := validatorsWith(t, apiServerWith(t))
	profile := fixture.ClusterProfileNamed("bad", func(p *v1alpha1.ClusterCryptoProfile) {
		p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	})
	response := cluster.Handle(t.Context(), change(t, nil, profile))
	if response.Allowed || response.Result.Details.Causes[0].Field != "spec.namespaceSelector.matchExpressions[0].operator" {
		t.Errorf("answered %v", response.Result)
	}
}

func TestWhatIsNotLookedAt(t *testing.T) {
	bad := func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "md5" }
	deleting := func(p *v1alpha1.CryptoProfile) {
		p.DeletionTimestamp, p.Finalizers = &fixture.DayOne, []string{"example.com/finalizer"}
	}
	tests := map[string]struct {
		before, after *v1alpha1.CryptoProfile
		allowed       bool
	}{
		"a change to a bad one":                             {before: fixture.ProfileNamed("p"), after: fixture.ProfileNamed("p", bad)},
		"a bad one that is being deleted":                   {before: fixture.ProfileNamed("p"), after: fixture.ProfileNamed("p", bad, deleting), allowed: true},
		"the labels of one that was bad before":             {before: fixture.ProfileNamed("p", bad), after: fixture.ProfileNamed("p", bad, func(p *v1alpha1.CryptoProfile) { p.Labels = fixture.Enabled }), allowed: true},
		"one that was bad before and is bad in another way": {before: fixture.ProfileNamed("p", bad), after: fixture.ProfileNamed("p", func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "md4" })},
		"one that was bad before and is good":               {before: fixture.ProfileNamed("p", bad), after: fixture.ProfileNamed("p"), allowed: true},
	}
	namespaced, _ := validatorsWith(t, apiServerWith(t, fixture.Namespace("shop", nil)))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			response := namespaced.Handle(t.Context(), change(t, test.before, test.after))
			if response.Allowed != test.allowed {
				t.Errorf("allowed is %t: %v", response.Allowed, response.Result)
			}
		})
	}
	t.Run("a deletion", func(t *testing.T) {
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: fixture.JSON(t, fixture.ProfileNamed("p", bad))},
		}}
		if response := namespaced.Handle(t.Context(), request); !response.Allowed {
			t.Error(response.Result)
		}
	})
}

func TestAProfileThatWillNotCountIsAdmittedWithAWarning(t *testing.T) {
	called := func(name string) func(*v1alpha1.CryptoProfile) {
		return func(p *v1alpha1.CryptoProfile) { p.Spec.ProfileName = name }
	}
	clusterCalled := func(name string) func(*v1alpha1.ClusterCryptoProfile) {
		return func(p *v1alpha1.ClusterCryptoProfile) { p.Spec.ProfileName = name }
	}
	only := func(label string) func(*v1alpha1.ClusterCryptoProfile) {
		return func(p *v1alpha1.ClusterCryptoProfile) {
			p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{label: "yes"}}
		}
	}
	younger := func(p *v1alpha1.ClusterCryptoProfile) { p.CreationTimestamp = metav1.Time{} }
	server := apiServerWith(t,
		fixture.Namespace("shop", map[string]string{"shop": "yes"}), fixture.Namespace("bank", map[string]string{"bank": "yes"}),
		fixture.ProfileNamed("theirs", called("Taken")),
		fixture.ClusterProfileNamed("everywhere", clusterCalled("Global")),
		fixture.ClusterProfileNamed("bank-only", clusterCalled("Bank"), only("bank")))
	namespaced, cluster := validatorsWith(t, server)
	tests := map[string]struct {
		handler admission.Handler
		object  client.Object
		want    []string
	}{
		"none if the name is free":                         {handler: namespaced, object: fixture.ProfileNamed("mine", called("Free"))},
		"none if the name is taken in another namespace":   {handler: namespaced, object: fixture.ProfileNamed("mine", called("Bank"))},
		"none for a cluster profile whose name is free":    {handler: cluster, object: fixture.ClusterProfileNamed("mine", clusterCalled("Free"))},
		"none if the cluster profiles share no namespace":  {handler: cluster, object: fixture.ClusterProfileNamed("mine", clusterCalled("Bank"), only("shop"))},
		"none for an object that is compared with itself":  {handler: cluster, object: fixture.ClusterProfileNamed("everywhere", clusterCalled("Global"))},
		"none for a namespaced object and its older state": {handler: namespaced, object: fixture.ProfileNamed("theirs", called("Taken"))},
		"another of the namespace has the name": {
			handler: namespaced, object: fixture.ProfileNamed("yours", called("Taken")),
			want: []string{`the profile is valid and will not be served: The profile name "Taken" belongs to CryptoProfile "theirs", which is older.`},
		},
		"a cluster profile has the name": {
			handler: namespaced, object: fixture.ProfileNamed("a", called("Global")),
			want: []string{`the profile is valid and will not be served: The profile name "Global" belongs to ClusterCryptoProfile "everywhere", which counts before a CryptoProfile.`},
		},
		"an older cluster profile has the name": {
			handler: cluster, object: fixture.ClusterProfileNamed("a", clusterCalled("Bank"), younger),
			want: []string{`the profile name "Bank" belongs to ClusterCryptoProfile "bank-only", which is older, in 1 namespaces that both select; there this profile will not be served`},
		},
		"a cluster profile takes the name from another": {
			handler: cluster, object: fixture.ClusterProfileNamed("a", clusterCalled("Global")),
			want: []string{`the profile name "Global" belongs from now on to this object and no longer to ClusterCryptoProfile "everywhere", in 2 namespaces that both select`},
		},
		"a cluster profile takes the name from a profile of a namespace": {
			handler: cluster, object: fixture.ClusterProfileNamed("a", clusterCalled("Taken")),
			want: []string{`CryptoProfile "theirs" of namespace "shop" has the profile name "Taken" too and will not be served: a ClusterCryptoProfile counts before it`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			response := test.handler.Handle(t.Context(), change(t, nil, test.object))
			if !response.Allowed {
				t.Fatal(response.Result)
			}
			if diff := cmp.Diff(test.want, response.Warnings); diff != "" {
				t.Errorf("other warnings than expected (-want +found):\n%s", diff)
			}
		})
	}
}

func TestAProfileThatCanNeverServeACallIsAdmittedWithAWarning(t *testing.T) {
	namespaced, cluster := validatorsWith(t, apiServerWith(t, fixture.Namespace("shop", nil)))
	spec := v1alpha1.ProfileSpec{}
	if err := yaml.UnmarshalStrict([]byte(`
api:
  signCertificate:
    signAlg: rsa
    hashAlg: sha-256
    validity: {validNotBeforeOffset: -1h, validNotAfterOffset: 720h}
    keyConstraints:
      subject: {ecdsa: {minKeySize: 256, maxKeySize: 384}}
      issuer: {ecdsa: {minKeySize: 256, maxKeySize: 384}}
`), &spec); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`spec.api.signCertificate.keyConstraints.issuer: does not list "RSA", the keys of SignAlg "rsa", so that every issuer is refused`,
	}
	for kind, response := range map[string]admission.Response{
		"CryptoProfile": namespaced.Handle(t.Context(), change(t, nil, fixture.ProfileNamed("idle", func(p *v1alpha1.CryptoProfile) { p.Spec = spec }))),
		"ClusterCryptoProfile": cluster.Handle(t.Context(), change(t, nil, fixture.ClusterProfileNamed("idle", func(p *v1alpha1.ClusterCryptoProfile) {
			p.Spec.ProfileSpec = spec
		}))),
	} {
		t.Run(kind, func(t *testing.T) {
			if !response.Allowed {
				t.Fatal(response.Result)
			}
			if diff := cmp.Diff(want, response.Warnings); diff != "" {
				t.Errorf("other warnings than expected (-want +found):\n%s", diff)
			}
		})
	}
}

func TestAProfileForWhichThereMayBeNoRoomIsAdmittedWithAWarning(t *testing.T) {
	sized := func(size int) func(*v1alpha1.CryptoProfile) {
		return func(p *v1alpha1.CryptoProfile) {
			p.Spec.KMS = &v1alpha1.KMS{Client: "test", Config: map[string]apiextensionsv1.JSON{"text": {Raw: []byte(`"` + strings.Repeat("x", size) + `"`)}}}
		}
	}
	accepted := func(p *v1alpha1.CryptoProfile) {
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue}}
	}
	const large = render.MaxSetSize * 2 / 3
	stored, other := fixture.ProfileNamed("b", sized(large), accepted), fixture.ProfileNamed("a", sized(render.MaxSetSize/8))
	set := fixture.SetIn("shop", string(render.Effective([]v1alpha1.CryptoProfile{*other, *stored}, nil, fixture.Namespace("shop", nil)).Data))
	namespaced, _ := validatorsWith(t, apiServerWith(t, fixture.Namespace("shop", nil), other, stored, set))
	const warning = "the profile is valid and may not be served: with it the profiles of the namespace take 1"
	for sentence, test := range map[string]struct {
		before, after *v1alpha1.CryptoProfile
		begins        string
	}{
		"a new one that is too large":    {after: fixture.ProfileNamed("c", sized(large)), begins: warning},
		"a new one that is small enough": {after: fixture.ProfileNamed("c", sized(render.MaxSetSize/8))},
		"one that is served and grows":   {before: stored, after: fixture.ProfileNamed("b", sized(large+1000))},
		"one that grows too much":        {before: stored, after: fixture.ProfileNamed("b", sized(large+render.MaxSetSize/4)), begins: warning},
	} {
		t.Run(sentence, func(t *testing.T) {
			request := change(t, nil, test.after)
			if test.before != nil {
				request = change(t, test.before, test.after)
			}
			response := namespaced.Handle(t.Context(), request)
			if !response.Allowed || (len(response.Warnings) == 1) != (test.begins != "") || len(response.Warnings) > 1 {
				t.Fatalf("answered %v with the warnings %.300q, expected allowed with %q", response.Result, response.Warnings, test.begins)
			}
			if test.begins != "" && !strings.HasPrefix(response.Warnings[0], test.begins) {
				t.Errorf("warned %q, expected %q", response.Warnings, test.begins)
			}
		})
	}
}

func TestManyConflictsAreCounted(t *testing.T) {
	objects := []client.Object{fixture.Namespace("shop", nil)}
	for i := range maxConflicts + 3 {
		objects = append(objects, fixture.ProfileNamed(string(rune('a'+i)), func(p *v1alpha1.CryptoProfile) { p.Spec.ProfileName = "Taken" }))
	}
	_, cluster := validatorsWith(t, apiServerWith(t, objects...))
	response := cluster.Handle(t.Context(), change(t, nil, fixture.ClusterProfileNamed("Taken")))
	if len(response.Warnings) != maxConflicts+1 || response.Warnings[maxConflicts] != "and 3 more conflicts of this kind; the condition Accepted of each object says which" {
		t.Errorf("warned %q", response.Warnings)
	}
}

func TestAProfileIsAdmittedWithAWarningIfConflictsCannotBeLookedFor(t *testing.T) {
	reader := interceptor.NewClient(apiServerWith(t, fixture.Namespace("shop", nil)), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("the cache is not there")
		},
	})
	namespaced, cluster := validatorsWith(t, reader)
	for kind, response := range map[string]admission.Response{
		"CryptoProfile":        namespaced.Handle(t.Context(), change(t, nil, fixture.ProfileNamed("p"))),
		"ClusterCryptoProfile": cluster.Handle(t.Context(), change(t, nil, fixture.ClusterProfileNamed("p"))),
	} {
		want := []string{"the webhook could not check whether the profile conflicts with another one; the condition Accepted will say so"}
		if !response.Allowed || !slices.Equal(response.Warnings, want) {
			t.Errorf("%s: answered %v with the warnings %q, expected allowed with %q", kind, response.Result, response.Warnings, want)
		}
	}
}

// A user who creates a namespace and a profile at the same time is faster than the cache.
func TestAProfileOfANewNamespaceIsAdmittedWithoutAWarning(t *testing.T) {
	namespaced, _ := validatorsWith(t, apiServerWith(t))
	if response := namespaced.Handle(t.Context(), change(t, nil, fixture.ProfileNamed("p"))); !response.Allowed || len(response.Warnings) > 0 {
		t.Errorf("answered %v with the warnings %q, expected allowed without any", response.Result, response.Warnings)
	}
}

func TestValidationsAreCountedByResult(t *testing.T) {
	namespaced, _ := validatorsWith(t, apiServerWith(t, fixture.Namespace("shop", nil)))
	broken := change(t, nil, fixture.ProfileNamed("p"))
	broken.Object.Raw = json.RawMessage("{")
	for result, request := range map[string]admission.Request{
		resultAccepted: change(t, nil, fixture.ProfileNamed("p")),
		resultRefused:  change(t, nil, fixture.ProfileNamed("p", func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "md5" })),
		resultError:    broken,
	} {
		before := validations(t, result)
		namespaced.Handle(t.Context(), request)
		if after := validations(t, result); after != before+1 {
			t.Errorf("%s went from %v to %v, expected one more", result, before, after)
		}
	}
}

func TestRefusedProfilesAreCountedByReasonAndTimed(t *testing.T) {
	namespaced, _ := validatorsWith(t, apiServerWith(t, fixture.Namespace("shop", nil)))
	_, before, after := examples(t)
	guarded := counted(guardWith(t, shopServing(t, before), false, nil))
	invalid := change(t, nil, fixture.ProfileNamed("p", func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "md5" }))
	for reason, test := range map[string]struct {
		handler admission.Handler
		request admission.Request
	}{
		reasonInvalid: {namespaced, invalid},
		reasonWeaker:  {guarded, byAlice(change(t, before, after))},
		reasonOther: {counted(admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
			return admission.Denied("below the least strength")
		})), invalid},
	} {
		refusals := func() float64 { return counterOf(t, profileRefusals.WithLabelValues(reason)) }
		refused, timed := refusals(), validationsTimed(t)
		test.handler.Handle(t.Context(), test.request)
		if now := refusals(); now != refused+1 {
			t.Errorf("refusals for the reason %s went from %v to %v, expected one more", reason, refused, now)
		}
		if now := validationsTimed(t); now != timed+1 {
			t.Errorf("%d durations were observed for one request", now-timed)
		}
	}
}

func validations(t *testing.T, result string) float64 {
	t.Helper()
	return counterOf(t, profileValidations.WithLabelValues(result))
}

func validationsTimed(t *testing.T) uint64 {
	t.Helper()
	var metric dto.Metric
	if err := profileValidationDuration.Write(&metric); err != nil {
		t.Fatal(err)
	}
	return metric.GetHistogram().GetSampleCount()
}

func counterOf(t *testing.T, counter prometheus.Counter) float64 {
	t.Helper()
	var metric dto.Metric
	if err := counter.Write(&metric); err != nil {
		t.Fatal(err)
	}
	return metric.GetCounter().GetValue()
}
