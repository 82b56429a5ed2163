// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
	"github.com/crypto-broker/crypto-broker-operator/controllers/rollout"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// guardWith returns a guard for CryptoProfiles. Access reviews get this answer, or this error.
func guardWith(t *testing.T, reader client.Reader, allowed bool, err error) admission.Handler {
	t.Helper()
	scheme := fixture.Scheme(t)
	g := newGuard(reader, Options{OperatorNamespace: "crypto-broker-system", Review: func(_ context.Context, review *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
		want := authorizationv1.ResourceAttributes{Group: "cryptobroker.io", Version: "v1alpha1", Resource: "cryptoprofiles", Verb: "weaken", Namespace: "shop", Name: "payments"}
		if *review.Spec.ResourceAttributes != want || review.Spec.User != "alice" || len(review.Spec.Groups) != 1 || review.Spec.Extra["scopes"][0] != "all" {
			t.Errorf("asked for %+v", review.Spec)
		}
		review.Status.Allowed = allowed
		return review, err
	}})
	return guardedBy(g, admission.NewDecoder(scheme), &v1alpha1.CryptoProfile{}, admission.WithValidator(scheme, newCryptoProfileValidator(reader, keysOf(reader))).Handler)
}

func byAlice(request admission.Request) admission.Request {
	request.UserInfo = authenticationv1.UserInfo{Username: "alice", Groups: []string{"staff"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"all"}}}
	return request
}

// examples are the profiles that the documentation shows, before and after.
func examples(t *testing.T) (text string, before, after *v1alpha1.CryptoProfile) {
	t.Helper()
	data, err := os.ReadFile("../../docs/downgrade-guard.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(apiVersion: cryptobroker.io/.*?)```").FindAllSubmatch(data, -1)
	if len(blocks) < 2 {
		t.Fatalf("found %d profiles in the documentation, expected two", len(blocks))
	}
	before, after = &v1alpha1.CryptoProfile{}, &v1alpha1.CryptoProfile{}
	if err := errors.Join(yaml.UnmarshalStrict(blocks[0][1], before), yaml.UnmarshalStrict(blocks[1][1], after)); err != nil {
		t.Fatal(err)
	}
	before.CreationTimestamp, after.CreationTimestamp = fixture.DayOne, fixture.DayOne
	return strings.Join(strings.Fields(string(data)), " "), before, after
}

// shopServing is the API server of a namespace that serves a profile.
func shopServing(t *testing.T, p *v1alpha1.CryptoProfile) client.WithWatch {
	t.Helper()
	set := fixture.ProfilesIn(p.Namespace)
	set.Data[profile.FileName] = string(render.Effective([]v1alpha1.CryptoProfile{*p}, nil, fixture.Namespace(p.Namespace, nil)).Data)
	return apiServerWith(t, fixture.Namespace(p.Namespace, nil), set, p)
}

func TestTheExampleOfTheDocumentationIsWhatHappens(t *testing.T) {
	text, before, after := examples(t)
	reader := shopServing(t, before)
	refused := guardWith(t, reader, false, nil).Handle(t.Context(), byAlice(change(t, before, after)))
	if refused.Allowed || refused.Result.Code != http.StatusForbidden || !strings.Contains(text, refused.Result.Message) {
		t.Fatalf("the documentation does not show this answer:\n%s", refused.Result.Message)
	}
	digest := allowsIt.FindString(refused.Result.Message)
	annotated := after.DeepCopy()
	annotated.Annotations = map[string]string{v1alpha1.AllowWeakerAnnotation: digest}
	if response := guardWith(t, reader, false, nil).Handle(t.Context(), byAlice(change(t, before, annotated))); response.Allowed || !strings.Contains(text, response.Result.Message) {
		t.Errorf("the documentation does not show this answer:\n%s", response.Result.Message)
	}
	response := guardWith(t, reader, true, nil).Handle(t.Context(), byAlice(change(t, before, annotated)))
	if !response.Allowed || len(response.Warnings) != 1 || !strings.Contains(text, "Warning: "+response.Warnings[0]) {
		t.Errorf("the documentation does not show these warnings (%v):\n%q", response.Result, response.Warnings)
	}
}

var allowsIt = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

func TestTheGuardFailsClosed(t *testing.T) {
	_, before, after := examples(t)
	annotated := before.DeepCopy()
	annotated.Annotations = map[string]string{v1alpha1.AllowWeakerAnnotation: "sha256:0"}
	unreadable := fixture.ProfilesIn("shop")
	unreadable.Data[profile.FileName] = "{"
	for sentence, test := range map[string]struct {
		reader  client.Reader
		after   *v1alpha1.CryptoProfile
		failure error
		says    string
	}{
		"when the API server does not answer who may": {shopServing(t, before), annotated, errors.New("it is busy"), `find out whether "alice" may make CryptoProfile "payments" weaker: it is busy`},
		"when the namespace can't be read": {interceptor.NewClient(shopServing(t, before), interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return errors.New("the cache is not there")
			},
		}), after, nil, "find out whether a profile becomes weaker: the cache is not there"},
		"when what was served can't be read": {apiServerWith(t, fixture.Namespace("shop", nil), unreadable, before), after, nil, "ConfigMap shop/crypto-broker-profiles: the set of profiles can't be read"},
	} {
		t.Run(sentence, func(t *testing.T) {
			response := guardWith(t, test.reader, true, test.failure).Handle(t.Context(), byAlice(change(t, before, test.after)))
			if response.Allowed || response.Result.Code != http.StatusInternalServerError || !strings.Contains(response.Result.Message, test.says) {
				t.Errorf("answered %v, expected %q", response.Result, test.says)
			}
		})
	}
}

func TestWhatTheGuardDoesNotLookAt(t *testing.T) {
	_, before, weak := examples(t)
	deleting := weak.DeepCopy()
	deleting.DeletionTimestamp, deleting.Finalizers = &fixture.DayOne, []string{"example.com/finalizer"}
	labelled := before.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	annotated := before.DeepCopy()
	annotated.Annotations = map[string]string{v1alpha1.AllowWeakerAnnotation: "sha256:0"}
	for sentence, request := range map[string]admission.Request{
		"another label":                        change(t, before, labelled),
		"an annotation that stays or goes":     change(t, annotated, before),
		"a profile that is being deleted":      change(t, before, deleting),
		"a deletion that makes nothing weaker": {AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: fixture.JSON(t, before)}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			response := guardWith(t, shopServing(t, before), false, nil).Handle(t.Context(), byAlice(request))
			if !response.Allowed || len(response.Warnings) > 0 {
				t.Errorf("answered %v with the warnings %q", response.Result, response.Warnings)
			}
		})
	}
}

// The strong profile of the documentation has reached some brokers.
func TestAChangeThatIsBeingRolledOutCanBeTakenBack(t *testing.T) {
	_, strong, weak := examples(t)
	weak.Spec.Rollout = &v1alpha1.Rollout{Steps: []v1alpha1.RolloutStep{{SetWeight: ptr.To[int32](10), Pause: &v1alpha1.RolloutPause{}}}}
	strong.Spec.Rollout = weak.Spec.Rollout
	p, err := render.Document(strong.Name, &strong.Spec)
	if err != nil {
		t.Fatal(err)
	}
	for sentence, test := range map[string]struct {
		phase   string
		allowed bool
	}{
		"while it waits":              {v1alpha1.RolloutPaused, true},
		"after it failed":             {v1alpha1.RolloutFailed, true},
		"but not once it is complete": {v1alpha1.RolloutComplete, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			stored := strong.DeepCopy()
			stored.Status.Rollout = &v1alpha1.RolloutStatus{Phase: test.phase, Digest: rollout.Digest(p), Step: 1, Below: 7}
			response := guardWith(t, shopServing(t, weak), false, nil).Handle(t.Context(), byAlice(change(t, stored, weak)))
			if response.Allowed != test.allowed {
				t.Errorf("answered %+v", response.Result)
			}
		})
	}
}
