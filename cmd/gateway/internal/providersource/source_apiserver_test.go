// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package providersource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

const (
	operatorNamespace = "crypto-broker-system"
	gatewayUser       = "system:serviceaccount:crypto-broker-system:key-gateway"
)

var (
	access *rest.Config
	admin  client.Client
	// reads are the rights of the gateway in the whole cluster.
	reads = []rbacv1.PolicyRule{
		{APIGroups: []string{"cryptobroker.io"}, Resources: []string{"keyproviders", "clusterkeyproviders"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}},
	}
	subjects = []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: gatewayUser}}
)

func TestMain(m *testing.M) {
	os.Exit(apiserver.Run(m, func(config *rest.Config) (err error) {
		access = config
		if admin, err = client.New(config, client.Options{Scheme: scheme()}); err != nil {
			return err
		}
		meta := metav1.ObjectMeta{Name: "key-gateway"}
		return errors.Join(
			admin.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}),
			admin.Create(context.Background(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: reads}),
			admin.Create(context.Background(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: meta.Name}}),
		)
	}))
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
}

// startSource runs a source as the gateway's user until the test ends.
func startSource(t *testing.T) (*Source, *managers) {
	t.Helper()
	config := rest.CopyConfig(access)
	config.Impersonate.UserName = gatewayUser
	objects, err := cache.New(config, cache.Options{Scheme: scheme()})
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := corev1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	opened := &managers{}
	s := New(Options{
		Types: providers.Types{providers.OpenBao: opened.open}, Objects: objects, Secrets: secrets, OperatorNamespace: operatorNamespace,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- objects.Start(ctx) }()
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
		if open := opened.stillOpen(); open != 0 {
			t.Errorf("%d providers are open after the end", open)
		}
	})
	return s, opened
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func newNamespace(t *testing.T, name string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-", Labels: map[string]string{"test": name}}}
	create(t, namespace)
	return namespace.Name
}

func secretWith(namespace, name, token string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"token": []byte(token), "other": []byte("x")}}
}

// allow lets the gateway get and watch one Secret, as docs/key-providers.md says.
func allow(t *testing.T, namespace, name string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "key-gateway-" + name}
	create(t, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{"get", "watch"}},
	}})
	create(t, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: meta.Name}})
}

func providerSpec(endpoint, secret string) v1alpha1.KeyProviderSpec {
	return v1alpha1.KeyProviderSpec{
		Type: providers.OpenBao, Endpoints: []v1alpha1.KeyEndpoint{v1alpha1.KeyEndpoint("https://" + endpoint)},
		Credentials: &v1alpha1.KeyProviderCredentials{SecretRef: v1alpha1.SecretReference{Name: secret}},
	}
}

// expectKey waits until a namespace gets its key from an endpoint with a token.
func expectKey(t *testing.T, s *Source, namespace, id, from string) {
	t.Helper()
	apiserver.Eventually(t, "the key comes from "+from, func() error {
		key, err := s.For(namespace).Key(t.Context(), keys.Name{ID: id, Use: keys.Use{Profile: "orders"}})
		if err != nil {
			return err
		}
		if key.Version() != from {
			return fmt.Errorf("the key comes from %q", key.Version())
		}
		return nil
	})
}

// expectNoKey waits until a namespace gets an error with a text.
func expectNoKey(t *testing.T, s *Source, namespace, id, profile string, want error, text string) {
	t.Helper()
	apiserver.Eventually(t, "no key because "+text, func() error {
		_, err := s.For(namespace).Key(t.Context(), keys.Name{ID: id, Use: keys.Use{Profile: profile}})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
			return fmt.Errorf("found %w", err)
		}
		return nil
	})
}

// expectProblem waits until the report says that a provider has this problem, or no problem, with the present generation and Secret.
func expectProblem(t *testing.T, s *Source, provider *v1alpha1.KeyProvider, problem string) {
	t.Helper()
	secret := &corev1.Secret{}
	err := admin.Get(t.Context(), client.ObjectKey{Namespace: provider.Namespace, Name: provider.Spec.Credentials.SecretRef.Name}, secret)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	want := providerreport.Provider{UID: provider.UID, Generation: provider.Generation, Problem: problem}
	if problem == "" {
		want.SecretVersion = secret.ResourceVersion
	}
	apiserver.Eventually(t, "the report has the problem "+problem, func() error {
		for _, p := range s.Report().Providers {
			if p.UID == provider.UID && !reflect.DeepEqual(p, want) {
				return fmt.Errorf("found %+v, expected %+v", p, want)
			} else if p.UID == provider.UID {
				return nil
			}
		}
		return errors.New("the provider is not in the report")
	})
}

func TestASecretTakesEffectWhenItMayBeReadAndWhenItChanges(t *testing.T) {
	s, opened := startSource(t)
	namespace := newNamespace(t, "shop")
	create(t, secretWith(namespace, "bao", "one"))
	provider := &v1alpha1.KeyProvider{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hsm"}, Spec: providerSpec("bao", "bao")}
	create(t, provider)
	expectNoKey(t, s, namespace, "hsm/a", "orders", keys.ErrUnavailable, `the key gateway may not read the Secret "bao" in namespace "`+namespace+`"`)

	expectProblem(t, s, provider, providerreport.SecretForbidden)

	allow(t, namespace, "bao")
	expectKey(t, s, namespace, "hsm/a", "https://bao one")
	expectProblem(t, s, provider, "")

	changed := secretWith(namespace, "bao", "two")
	if err := admin.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	expectKey(t, s, namespace, "hsm/a", "https://bao two")

	count := opened.opened()
	changed.Labels, changed.Data["other"] = map[string]string{"a": "b"}, []byte("y")
	if err := admin.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	provider.Spec.AllowedProfiles = []v1alpha1.AllowedProfileName{"payments"}
	if err := admin.Update(t.Context(), provider); err != nil {
		t.Fatal(err)
	}
	expectNoKey(t, s, namespace, "hsm/a", "orders", keys.ErrDenied, `does not allow the profile "orders"`)
	if now := opened.opened(); now != count {
		t.Errorf("%d providers were opened for changes that concern no connection", now-count)
	}
	provider.Spec.AllowedProfiles, provider.Spec.Endpoints = nil, []v1alpha1.KeyEndpoint{"https://bao-2"}
	if err := admin.Update(t.Context(), provider); err != nil {
		t.Fatal(err)
	}
	expectKey(t, s, namespace, "hsm/a", "https://bao-2 two")

	changed.Data["issuer.crt"] = []byte("certificate")
	if err := admin.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	expectKey(t, s, namespace, "hsm/a", "https://bao-2 two certificate")

	if err := admin.Delete(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	expectNoKey(t, s, namespace, "hsm/a", "orders", keys.ErrUnavailable, `there is no Secret "bao"`)
	expectProblem(t, s, provider, providerreport.SecretNotFound)
	create(t, secretWith(namespace, "bao", "three"))
	expectKey(t, s, namespace, "hsm/a", "https://bao-2 three")
	if err := admin.Delete(t.Context(), provider); err != nil {
		t.Fatal(err)
	}
	expectNoKey(t, s, namespace, "hsm/a", "orders", keys.ErrUnusable, `there is no provider "hsm"`)
}

func TestANamespaceReachesNoProviderOfAnother(t *testing.T) {
	s, opened := startSource(t)
	first, second, third := newNamespace(t, "first"), newNamespace(t, "second"), newNamespace(t, "third")
	for _, namespace := range []string{first, second} {
		create(t, secretWith(namespace, "bao", namespace))
		allow(t, namespace, "bao")
		create(t, &v1alpha1.KeyProvider{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hsm"}, Spec: providerSpec("bao", "bao")})
	}
	expectKey(t, s, first, "hsm/a", "https://bao "+first)
	expectKey(t, s, second, "hsm/a", "https://bao "+second)
	for _, namespace := range []string{third, "kube-system", operatorNamespace} {
		expectNoKey(t, s, namespace, "hsm/a", "orders", keys.ErrUnusable, `there is no provider "hsm"`)
	}
	expectNoKey(t, s, third, second+"/hsm/a", "orders", keys.ErrUnusable, "there is no provider")
	expectNoKey(t, s, first, "a", "orders", keys.ErrUnusable, "there is no default provider")
	expectNoKey(t, s, "does-not-exist", "hsm/a", "orders", keys.ErrUnavailable, "does not know yet")

	// The provider of the cluster takes precedence over the provider of the namespace. Other namespaces are not affected.
	create(t, secretWith(operatorNamespace, "bao", "cluster"))
	allow(t, operatorNamespace, "bao")
	count := opened.opened()
	all := &v1alpha1.ClusterKeyProvider{ObjectMeta: metav1.ObjectMeta{Name: "hsm"}, Spec: v1alpha1.ClusterKeyProviderSpec{
		KeyProviderSpec: providerSpec("bao-all", "bao"), NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"test": "first"}},
	}}
	all.Spec.AllowedProfiles = []v1alpha1.AllowedProfileName{"orders"}
	create(t, all)
	expectKey(t, s, first, "hsm/a", "https://bao-all cluster")
	expectKey(t, s, second, "hsm/a", "https://bao "+second)
	expectNoKey(t, s, first, "hsm/a", "payments", keys.ErrDenied, `does not allow the profile "payments"`)
	expectNoKey(t, s, third, "hsm/a", "orders", keys.ErrUnusable, `there is no provider "hsm"`)
	if now := opened.opened() - count; now != 1 {
		t.Errorf("%d providers were opened for one ClusterKeyProvider, expected 1", now)
	}

	// The provider follows the label of a namespace, when it is added and when it is removed.
	for _, step := range []struct{ label, from string }{{"first", "https://bao-all cluster"}, {"second", "https://bao " + second}} {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"test":"`+step.label+`"}}}`))
		if err := admin.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second}}, patch); err != nil {
			t.Fatal(err)
		}
		expectKey(t, s, second, "hsm/a", step.from)
	}
	if err := admin.Delete(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	expectKey(t, s, first, "hsm/a", "https://bao "+first)
}
