// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/controllers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
	"github.com/crypto-broker/crypto-broker-operator/controllers/keyproviders"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
	"github.com/crypto-broker/crypto-broker-operator/webhook/certificates"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
	webhookserver "github.com/crypto-broker/crypto-broker-operator/webhook/server"
)

// startWholeOperator runs webhooks and reconcilers until the test ends, with the
// rights of the operator's account and no others.
func startWholeOperator(t *testing.T, minimumStrength int) {
	t.Helper()
	startWholeOperatorWith(t, minimumStrength, nil)
}

// startWholeOperatorWith does so with an audit log.
func startWholeOperatorWith(t *testing.T, minimumStrength int, records *audit.Log) {
	t.Helper()
	account := rest.CopyConfig(access)
	account.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + operatorNamespace + ":crypto-broker-operator",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + operatorNamespace, "system:authenticated"},
	}
	certs, err := certificates.New(account, certificateOptions())
	if err != nil {
		t.Fatal(err)
	}
	skip := true
	mgr, err := manager.New(account, manager.Options{
		Scheme:        apiServerScheme(),
		Metrics:       server.Options{BindAddress: "0"},
		Cache:         controllers.CacheOptions(operatorNamespace),
		Controller:    config.Controller{SkipNameValidation: &skip},
		WebhookServer: webhookserver.New(webhookserver.Options{Host: "127.0.0.1", Port: port, TLS: certs.TLSOption}),
	})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		Register(mgr, Options{Template: testTemplate(), OperatorNamespace: operatorNamespace, MinimumStrength: minimumStrength, Audit: records}),
		controllers.Setup(mgr, controllers.Options{
			OperatorNamespace: operatorNamespace, StatusPort: 9470, Annotate: true, MinimumStrength: minimumStrength,
			AskGateway: keyproviders.AskBy(confirm.NewLoopbackClient()),
			Ask: func(context.Context, netip.AddrPort) (confirm.Answer, error) {
				return confirm.Answer{}, errors.New("there are no brokers here")
			},
			Keys:    keysOf(func(context.Context) (signing.Ring, error) { return signing.NewRing(signingKey(1)), nil }),
			Metrics: prometheus.NewRegistry(),
			Audit:   records,
		}),
		mgr.Add(certs))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the operator ended with %v", err)
		}
	}))
	eventually(t, "the operator is ready", func() error {
		return errors.Join(certs.Ready(nil), mgr.GetWebhookServer().StartedChecker()(nil))
	})
	eventually(t, "the API server calls it", func() error {
		_, err := tryPod(t, "default", fixture.PodWith(fixture.Asking("maybe")))
		if err == nil || !strings.Contains(err.Error(), "expected \"true\"") {
			return fmt.Errorf("answered %w", err)
		}
		return nil
	})
}

// actor is a user, with the warnings that the API server has sent.
type actor struct {
	client.Client
	warnings *warnings
}

// userOf is a user who has in a namespace what the ClusterRole admin aggregates
// and, as the chart's rbac.aggregateWriteToEdit gives, the right to write
// profiles; and further verbs on them.
func userOf(t *testing.T, namespace, name string, verbs ...string) actor {
	t.Helper()
	user := name + "-of-" + namespace
	roles := []client.Object{&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"cryptobroker.io"}, Resources: []string{"cryptoprofiles"},
			Verbs: append([]string{"get", "list", "create", "update", "patch", "delete", "deletecollection"}, verbs...),
		}},
	}}
	bind := func(kind, role string) {
		roles = append(roles, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "test-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
	}
	bind("Role", user)
	for _, role := range []string{"admin", "edit", "view"} {
		bind("ClusterRole", "system:aggregate-to-"+role)
	}
	for _, role := range roles {
		if err := admin.Create(t.Context(), role); err != nil {
			t.Fatal(err)
		}
	}
	a := actor{warnings: &warnings{}}
	account := rest.CopyConfig(access)
	account.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	account.WarningHandlerWithContext = a.warnings
	var err error
	if a.Client, err = client.New(account, client.Options{Scheme: apiServerScheme()}); err != nil {
		t.Fatal(err)
	}
	return a
}

func profileOf(namespace, name, algorithm string) *v1alpha1.CryptoProfile {
	return fixture.ProfileNamed(name, func(p *v1alpha1.CryptoProfile) {
		p.Namespace, p.CreationTimestamp, p.Spec.API.HashData.HashAlg = namespace, metav1.Time{}, algorithm
	})
}

// expectServed waits until the profile file of a namespace has this line for the
// digest algorithm of its only profile; "" is none.
func expectServed(t *testing.T, namespace, algorithm string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the namespace serves %q", algorithm), func() error {
		var set corev1.ConfigMap
		err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: v1alpha1.ProfilesConfigMap}, &set)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		file := set.Data["Profiles.yaml"]
		if algorithm == "" && file == "" || algorithm != "" && strings.Contains(file, "HashAlg: "+algorithm+"\n") {
			return nil
		}
		return fmt.Errorf("found %q", file)
	})
}

var allowedDigest = regexp.MustCompile(`cryptobroker\.io/allow-weaker(=|: )(sha256:[0-9a-f]{64})`)

const weaker = `spec.api.hashData.hashAlg: "sha-256" has a strength of 128 bits, "sha3-512" had 256 bits.`

// expectRefused expects a refusal that says what is weaker, and returns the digest that allows the change.
func expectRefused(t *testing.T, err error, says ...string) string {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Fatalf("answered %v, expected Forbidden", err)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the refusal does not say %q: %v", text, err)
		}
	}
	digest := allowedDigest.FindStringSubmatch(err.Error())
	if digest == nil {
		return ""
	}
	return digest[2]
}

func TestANamespaceAdministratorCannotWeakenAProfile(t *testing.T) {
	startWholeOperator(t, 0)
	attempts := map[string]func(t *testing.T, as actor, ns string) error{
		"by an update": func(t *testing.T, as actor, ns string) error {
			return changed(t, as, ns, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" })
		},
		"by a dry run": func(t *testing.T, as actor, ns string) error {
			p := profileOf(ns, "orders", "sha-256")
			return as.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"api":{"hashData":{"hashAlg":"sha-256"}}}}`)), client.DryRunAll)
		},
		"by deleting it and making it again at once": func(t *testing.T, as actor, ns string) error {
			if err := as.Delete(t.Context(), profileOf(ns, "orders", "")); err != nil {
				t.Fatal(err)
			}
			return as.Create(t.Context(), profileOf(ns, "orders", "sha-256"))
		},
		"by deleting all and making it again after it went": func(t *testing.T, as actor, ns string) error {
			if err := as.DeleteAllOf(t.Context(), &v1alpha1.CryptoProfile{}, client.InNamespace(ns)); err != nil {
				t.Fatal(err)
			}
			expectServed(t, ns, "")
			return as.Create(t.Context(), profileOf(ns, "orders", "sha-256"))
		},
		"by another object of the name": func(t *testing.T, as actor, ns string) error {
			if err := as.Delete(t.Context(), profileOf(ns, "orders", "")); err != nil {
				t.Fatal(err)
			}
			p := profileOf(ns, "copy", "sha-256")
			p.Spec.ProfileName = "orders"
			return as.Create(t.Context(), p)
		},
		"by calling it otherwise and back": func(t *testing.T, as actor, ns string) error {
			for _, name := range []string{"elsewhere", "orders"} {
				algorithm := map[string]string{"elsewhere": "sha3-512", "orders": "sha-256"}[name]
				if err := changed(t, as, ns, func(p *v1alpha1.CryptoProfile) {
					p.Spec.ProfileName, p.Spec.API.HashData.HashAlg = name, algorithm
				}); err != nil {
					return err
				}
			}
			return nil
		},
		"by a younger one that comes into its place": func(t *testing.T, as actor, ns string) error {
			p := profileOf(ns, "younger", "sha-256")
			p.Spec.ProfileName = "orders"
			if err := as.Create(t.Context(), p); err != nil {
				t.Fatal(err) // it has no effect while the older one exists
			}
			eventually(t, "the operator's cache has seen it", func() error {
				if err := as.Delete(t.Context(), profileOf(ns, "orders", ""), client.DryRunAll); !apierrors.IsForbidden(err) {
					return fmt.Errorf("answered %w", err)
				}
				return nil
			})
			return as.Delete(t.Context(), profileOf(ns, "orders", ""))
		},
		"by offering an operation more": func(t *testing.T, as actor, ns string) error {
			return changed(t, as, ns, func(p *v1alpha1.CryptoProfile) {
				p.Spec.API.HashData.HashAlg = "sha-256"
				p.Spec.API.EncryptData = &v1alpha1.EncryptData{EncryptAlg: "aes-gcm", KeySize: 256, NonceStrategy: "random", TagLength: 128}
			})
		},
	}
	for sentence, attempt := range attempts {
		t.Run(sentence, func(t *testing.T) {
			ns := newNamespace(t, nil, nil)
			as := userOf(t, ns, "administrator")
			if err := as.Create(t.Context(), profileOf(ns, "orders", "sha3-512")); err != nil {
				t.Fatal(err)
			}
			expectServed(t, ns, "sha3-512")
			says := []string{weaker, `"weaken"`}
			if strings.Contains(sentence, "operation") {
				says = append(says, "spec.api.encryptData: EncryptData and DecryptData are offered, which the profile refused.")
			}
			digest := expectRefused(t, attempt(t, as, ns), says...)
			if digest == "" {
				t.Fatal("the refusal names no digest")
			}
			var set corev1.ConfigMap
			if err := admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: v1alpha1.ProfilesConfigMap}, &set); err != nil || strings.Contains(set.Data["Profiles.yaml"], "sha-256") {
				t.Errorf("served is %q (%v)", set.Data["Profiles.yaml"], err)
			}
			// The digest does not help either.
			p := profileOf(ns, "orders", "sha-256")
			p.Annotations = map[string]string{v1alpha1.AllowWeakerAnnotation: digest}
			err := as.Create(t.Context(), p)
			if apierrors.IsAlreadyExists(err) {
				err = changed(t, as, ns, func(p *v1alpha1.CryptoProfile) {
					p.Annotations = map[string]string{v1alpha1.AllowWeakerAnnotation: digest}
				})
			}
			expectRefused(t, err)
		})
	}
}

// changed changes the profile orders of a namespace.
func changed(t *testing.T, as client.Client, ns string, change func(*v1alpha1.CryptoProfile)) error {
	t.Helper()
	for {
		var p v1alpha1.CryptoProfile
		if err := as.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "orders"}, &p); err != nil {
			return err
		}
		change(&p)
		if err := as.Update(t.Context(), &p); !apierrors.IsConflict(err) {
			return err
		}
	}
}

func TestAnAuthorWithTheVerbWeakensAProfileExactlyOnce(t *testing.T) {
	startWholeOperator(t, 0)
	ns := newNamespace(t, nil, nil)
	with, without := userOf(t, ns, "responsible", "weaken"), userOf(t, ns, "administrator")
	if err := without.Create(t.Context(), profileOf(ns, "orders", "sha3-512")); err != nil {
		t.Fatal(err)
	}
	expectServed(t, ns, "sha3-512")
	weaken := func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" }

	digest := expectRefused(t, changed(t, with, ns, weaken), weaker, "kubectl annotate cryptoprofile orders --namespace "+ns+" --overwrite cryptobroker.io/allow-weaker=sha256:")
	annotate := func(p *v1alpha1.CryptoProfile) {
		p.Annotations = map[string]string{v1alpha1.AllowWeakerAnnotation: digest}
	}
	if found := expectRefused(t, changed(t, without, ns, annotate), `with the verb "weaken" on cryptoprofiles "orders" in namespace "`+ns+`"`); found != "" {
		t.Errorf("the refusal names the digest %s", found)
	}
	if err := changed(t, with, ns, annotate); err != nil {
		t.Fatalf("the annotation is refused: %v", err)
	}
	expectRefused(t, changed(t, without, ns, weaken), `"weaken"`)
	expectRefused(t, changed(t, with, ns, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "shake-128" }), "shake-128")
	if err := changed(t, with, ns, weaken); err != nil {
		t.Fatalf("what was allowed is refused: %v", err)
	}
	if found := with.warnings.all(); !slices.Contains(found, `the profile "orders" of namespace "`+ns+`" becomes weaker. Somebody allowed this: `+weaker) {
		t.Errorf("warned %q", found)
	}
	expectServed(t, ns, "sha-256")

	if err := changed(t, without, ns, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha3-512" }); err != nil {
		t.Fatalf("to make it stronger is refused: %v", err)
	}
	expectServed(t, ns, "sha3-512")
	if again := expectRefused(t, changed(t, with, ns, weaken), weaker); again == digest {
		t.Error("the same digest would allow it again")
	}
}

func TestAClusterProfileThatComesOrGoesIsComparedInEachOfItsNamespaces(t *testing.T) {
	startWholeOperator(t, 0)
	tier := map[string]string{"tier": rand.String(10)} // unique, so no namespace of an earlier run has this label
	strong, weak := newNamespace(t, tier, nil), newNamespace(t, tier, nil)
	for ns, algorithm := range map[string]string{strong: "sha3-512", weak: "sha-256"} {
		if err := admin.Create(t.Context(), profileOf(ns, "orders", algorithm)); err != nil {
			t.Fatal(err)
		}
		expectServed(t, ns, algorithm)
	}
	policy := fixture.ClusterProfileNamed("guarded", func(p *v1alpha1.ClusterCryptoProfile) {
		p.CreationTimestamp = metav1.Time{}
		p.Spec.ProfileName, p.Spec.API.HashData.HashAlg = "orders", "sha-384"
		p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: tier}
	})
	var digest string
	eventually(t, "it is refused, since it is weaker in one namespace", func() error {
		err := admin.Create(t.Context(), policy.DeepCopy(), client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("answered %w", err)
		}
		digest = expectRefused(t, err, `this makes the profile "orders" of namespace "`+strong+`" weaker than what is served`, `"sha-384" has a strength of 192 bits, "sha3-512" had 256 bits`)
		return nil
	})
	policy.Annotations = map[string]string{v1alpha1.AllowWeakerAnnotation: digest}
	if err := admin.Create(t.Context(), policy); err != nil {
		t.Fatalf("what was allowed is refused: %v", err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), policy); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	expectServed(t, strong, "sha-384")
	expectServed(t, weak, "sha-384")

	// Without it, the weaker profile of a namespace would be in effect again.
	eventually(t, "to delete it is refused", func() error {
		err := admin.Delete(t.Context(), policy, client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("answered %w", err)
		}
		digest = expectRefused(t, err, `this puts CryptoProfile "orders" into service as the profile "orders" of namespace "`+weak+`", which is weaker than what is served`, "kubectl annotate cryptoprofile orders --namespace "+weak)
		return nil
	})
	if err := changed(t, admin, weak, func(p *v1alpha1.CryptoProfile) {
		p.Annotations = map[string]string{v1alpha1.AllowWeakerAnnotation: digest}
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "to delete it is allowed then", func() error { return admin.Delete(t.Context(), policy) })
	expectServed(t, weak, "sha-256")
	expectServed(t, strong, "sha3-512")
}

func TestAProfileBelowTheMinimumStrengthIsRefused(t *testing.T) {
	startWholeOperator(t, 192)
	ns := newNamespace(t, nil, nil)
	err := admin.Create(t.Context(), profileOf(ns, "orders", "sha-256"))
	expectRefused(t, err, "spec.api: The profile has a strength of 128 bits by SHA-256, and profiles of this cluster must have at least 192. HashData has 128 bits by SHA-256.")
	if err := admin.Create(t.Context(), profileOf(ns, "orders", "sha-384")); err != nil {
		t.Error(err)
	}
}

func TestAProfileCanBeDeletedWhileNobodyAnswers(t *testing.T) {
	operator := startOperator(t)
	ns := newNamespace(t, nil, nil)
	if err := admin.Create(t.Context(), profileOf(ns, "orders", "sha3-512")); err != nil {
		t.Fatal(err)
	}
	operator.stop()
	if err := changed(t, admin, ns, func(p *v1alpha1.CryptoProfile) { p.Spec.API.HashData.HashAlg = "sha-256" }); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("a change that nobody compares is answered with %v, expected a refusal", err)
	}
	if err := admin.Delete(t.Context(), profileOf(ns, "orders", "")); err != nil {
		t.Errorf("the profile can't be deleted: %v", err)
	}
}
