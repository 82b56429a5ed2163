// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package catalogue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/catalogue"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

const operatorUser = "operator"

var (
	// apiServer is the client of the tests, with all rights.
	apiServer client.Client
	// operatorConfig is used by the operator.
	operatorConfig *rest.Config
	scheme         = runtime.NewScheme()
)

func TestMain(m *testing.M) {
	os.Exit(apiserver.Run(m, func(admin *rest.Config) (err error) {
		for _, add := range []func(*runtime.Scheme) error{admissionregistrationv1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme} {
			if err := add(scheme); err != nil {
				return err
			}
		}
		if apiServer, err = client.New(admin, client.Options{Scheme: scheme}); err != nil {
			return err
		}
		for _, object := range rights() {
			if err := apiServer.Create(context.Background(), object); err != nil {
				return err
			}
		}
		operatorConfig = rest.CopyConfig(admin)
		operatorConfig.Impersonate.UserName = operatorUser
		return nil
	}))
}

// rights returns the rights that the chart grants with the catalogue, and the right to read.
func rights() []client.Object {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: operatorUser}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"clustercryptoprofiles"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"clustercryptoprofiles"}, ResourceNames: catalogue.Names(), Verbs: []string{"create", "patch"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}}
	return []client.Object{role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: operatorUser},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: operatorUser},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: operatorUser}},
	}}
}

// start runs the catalogue until the test ends or the function is called, and
// removes the profiles at the end.
func start(t *testing.T, options catalogue.Options) (stop func()) {
	t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(operatorConfig, ctrl.Options{
		Scheme:     scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := catalogue.Setup(mgr, options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		stop()
		if err := apiServer.DeleteAllOf(context.Background(), &v1alpha1.ClusterCryptoProfile{}); err != nil {
			t.Error(err)
		}
	})
	return stop
}

var eventually = apiserver.Eventually

func get(t *testing.T, name string) (*v1alpha1.ClusterCryptoProfile, error) {
	t.Helper()
	p := &v1alpha1.ClusterCryptoProfile{}
	return p, apiServer.Get(t.Context(), client.ObjectKey{Name: name}, p)
}

// expect waits until a profile has the expected content.
func expect(t *testing.T, name string, is func(*v1alpha1.ClusterCryptoProfile) bool) *v1alpha1.ClusterCryptoProfile {
	t.Helper()
	var found *v1alpha1.ClusterCryptoProfile
	eventually(t, "the profile "+name+" is as expected", func() error {
		p, err := get(t, name)
		if err != nil {
			return err
		}
		if found = p; !is(p) {
			return fmt.Errorf("found %+v", p)
		}
		return nil
	})
	return found
}

func isOurs(p *v1alpha1.ClusterCryptoProfile) bool {
	return p.Labels[v1alpha1.CatalogueLabel] == v1alpha1.CatalogueLabelValue && p.Spec.ProfileName != ""
}

func expectEvent(t *testing.T, p *v1alpha1.ClusterCryptoProfile, reason, says string) {
	t.Helper()
	eventually(t, "there is the event "+reason, func() error {
		var all eventsv1.EventList
		if err := apiServer.List(t.Context(), &all); err != nil {
			return err
		}
		for _, e := range all.Items {
			if e.Regarding.UID == p.UID && e.Reason == reason && strings.Contains(e.Note, says) {
				return nil
			}
		}
		return fmt.Errorf("found %d others", len(all.Items))
	})
}

func change(t *testing.T, name string, change func(*v1alpha1.ClusterCryptoProfile)) {
	t.Helper()
	eventually(t, "the profile is changed", func() error {
		p, err := get(t, name)
		if err != nil {
			return err
		}
		change(p)
		return apiServer.Update(t.Context(), p)
	})
}

func TestTheChosenProfilesAreAppliedOnceTheValidatorServes(t *testing.T) {
	var serves atomic.Bool
	asked := make(chan struct{}, 100)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"environment": "production"}}
	start(t, catalogue.Options{Profiles: []string{"default", "ksa-moderate-2020"}, NamespaceSelector: selector, Ready: func() error {
		select {
		case asked <- struct{}{}:
		default:
		}
		if !serves.Load() {
			return errors.New("not yet")
		}
		return nil
	}})
	for range 4 {
		<-asked
	}
	if _, err := get(t, "default"); !apierrors.IsNotFound(err) {
		t.Errorf("the profile was applied before the validator served: %v", err)
	}
	serves.Store(true)
	p := expect(t, "default", isOurs)
	if p.Spec.ProfileName != "Default" || p.Spec.NamespaceSelector.MatchLabels["environment"] != "production" {
		t.Errorf("found %+v", p.Spec)
	}
	expect(t, "ksa-moderate-2020", isOurs)
	if _, err := get(t, "ksa-advanced-2020"); !apierrors.IsNotFound(err) {
		t.Errorf("a profile was applied that nobody asked for: %v", err)
	}
}

func TestWhatTheCatalogueSaysIsPutBackAndWhatItDoesNotSayStays(t *testing.T) {
	start(t, catalogue.Options{Profiles: []string{"default"}})
	expect(t, "default", isOurs)
	change(t, "default", func(p *v1alpha1.ClusterCryptoProfile) {
		p.Spec.API.HashData.HashAlg = "shake-128"
		p.Spec.Callers = &v1alpha1.Callers{Containers: []string{"web"}}
	})
	p := expect(t, "default", func(p *v1alpha1.ClusterCryptoProfile) bool { return p.Spec.API.HashData.HashAlg == "sha3-512" })
	if p.Spec.Callers == nil || p.Spec.Callers.Containers[0] != "web" {
		t.Errorf("the callers that somebody added are gone: %+v", p.Spec.Callers)
	}
	if err := apiServer.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	expect(t, "default", func(again *v1alpha1.ClusterCryptoProfile) bool { return isOurs(again) && again.UID != p.UID })
}

func TestAProfileOfSomebodyElseIsLeftAlone(t *testing.T) {
	theirs := &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	theirs.Spec.API.HashData = &v1alpha1.HashData{HashAlg: "sha-256"}
	if err := apiServer.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	start(t, catalogue.Options{Profiles: catalogue.Names()})
	expectEvent(t, theirs, "CatalogueNameTaken", "add the label")
	for _, name := range catalogue.Names() {
		if name != "default" {
			expect(t, name, isOurs)
		}
	}
	found, err := get(t, "default")
	if err != nil || found.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("somebody else's profile was changed: %v, %+v", err, found)
	}
	change(t, "default", func(p *v1alpha1.ClusterCryptoProfile) {
		p.Labels = map[string]string{v1alpha1.CatalogueLabel: v1alpha1.CatalogueLabelValue}
	})
	expect(t, "default", func(p *v1alpha1.ClusterCryptoProfile) bool {
		return p.Spec.ProfileName == "Default" && p.Spec.API.HashData.HashAlg == "sha3-512"
	})
}

func TestAProfileThatIsNoLongerAskedForStaysAndSaysSo(t *testing.T) {
	stop := start(t, catalogue.Options{Profiles: []string{"default"}})
	p := expect(t, "default", isOurs)
	stop()
	start(t, catalogue.Options{})
	expectEvent(t, p, "CatalogueLeft", "Delete it when no application uses it")
	if _, err := get(t, "default"); err != nil {
		t.Error(err)
	}
}

func TestWhatTheAPIServerRefusesIsTold(t *testing.T) {
	stop := start(t, catalogue.Options{Profiles: []string{"default"}})
	expect(t, "default", isOurs)
	stop()
	// Fields of other users that are invalid in combination with fields of the catalogue.
	change(t, "default", func(p *v1alpha1.ClusterCryptoProfile) {
		p.Spec.API.SignCertificate.BasicConstraints = &v1alpha1.BasicConstraints{CA: true, PathLenConstraint: new(int32(1))}
	})
	start(t, catalogue.Options{Profiles: []string{"default"}})
	p, err := get(t, "default")
	if err != nil {
		t.Fatal(err)
	}
	expectEvent(t, p, "CatalogueRefused", "pathLenConstraint is only allowed with ca: true")
}

func TestARefusalOfAProfileThatIsNotThereYetIsToldToo(t *testing.T) {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "no-default"}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"cryptobroker.io"}, APIVersions: []string{"*"}, Resources: []string{"clustercryptoprofiles"}},
		}}}},
		Validations: []admissionregistrationv1.Validation{{Expression: "object.metadata.name != 'default'", Message: "this cluster has its own"}},
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "no-default"}, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: "no-default", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}}
	trial := &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	trial.Spec.API.HashData = &v1alpha1.HashData{HashAlg: "sha-256"}
	refused := func(ctx context.Context) bool {
		return apierrors.IsInvalid(apiServer.Create(ctx, trial.DeepCopy(), client.DryRunAll))
	}
	for _, object := range []client.Object{policy, binding} {
		if err := apiServer.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := apiServer.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "the policy is in force", func() error {
		if !refused(t.Context()) {
			return errors.New("not yet")
		}
		return nil
	})
	start(t, catalogue.Options{Profiles: []string{"default", "ksa-moderate-2020"}})
	expectEvent(t, trial, "CatalogueRefused", "this cluster has its own")
	expect(t, "ksa-moderate-2020", isOurs)
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, family := range families {
		if family.GetName() == "crypto_broker_operator_catalogue_refused" {
			for _, metric := range family.Metric {
				told = append(told, metric.Label[0].GetValue())
			}
		}
	}
	if len(told) != 1 || told[0] != "default" {
		t.Errorf("the metric tells of %q", told)
	}
}
