// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package controllers_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
	"github.com/crypto-broker/crypto-broker-operator/controllers/keyproviders"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

const (
	operatorNamespace = "crypto-broker-system"
	signingSecret     = "crypto-broker-operator-signing"
	digestAnnotation  = contract.ProfilesDigestAnnotation
)

var (
	// apiServer is the client of the tests, with all rights.
	apiServer client.WithWatch
	// operatorConfig is used by the operator, with the rights of config/rbac.
	operatorConfig *rest.Config
	scheme         = runtime.NewScheme()
)

func TestMain(m *testing.M) {
	os.Exit(apiserver.Run(m, func(admin *rest.Config) (err error) {
		for _, add := range []func(*runtime.Scheme) error{admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme} {
			if err := add(scheme); err != nil {
				return err
			}
		}
		admin.QPS = -1
		if apiServer, err = client.NewWithWatch(admin, client.Options{Scheme: scheme}); err != nil {
			return err
		}
		operatorConfig, err = apiserver.OperatorAccess(context.Background(), admin)
		return err
	}))
}

// operator is one that runs.
type operator struct {
	metrics *prometheus.Registry
	keys    *signing.Keys
	// stop ends the operator and waits for its end.
	stop func()
}

// start runs an operator until the test ends or stop is called.
func start(t *testing.T, change ...func(*controllers.Options)) operator {
	t.Helper()
	return startAs(t, operatorConfig, change...)
}

// startAs is as start, with another access to the API server.
func startAs(t *testing.T, access *rest.Config, change ...func(*controllers.Options)) operator {
	t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(access, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         controllers.CacheOptions(operatorNamespace),
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              v1alpha1.LeaderElectionLease,
		LeaderElectionNamespace:       operatorNamespace,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := signing.New(access, signing.Options{
		Namespace: operatorNamespace, SecretName: signingSecret, Lifetime: signing.DefaultLifetime,
		Pods: mgr.GetClient(), Elected: mgr.Elected(), Events: mgr.GetEventRecorder(v1alpha1.FieldManager),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(keys); err != nil {
		t.Fatal(err)
	}
	asking := confirm.NewLoopbackClient()
	o := operator{metrics: prometheus.NewRegistry(), keys: keys}
	options := controllers.Options{OperatorNamespace: operatorNamespace, StatusPort: 9470, Annotate: true, Ask: asking.Ask, AskGateway: keyproviders.AskBy(asking), Keys: keys, Metrics: o.metrics}
	for _, change := range change {
		change(&options)
	}
	if err := controllers.Setup(mgr, options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	o.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the operator ended with: %v", err)
		}
		asking.Close()
	}
	t.Cleanup(o.stop)
	return o
}

// namespace makes a namespace for the test.
func namespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: labels}}
	create(t, ns)
	t.Cleanup(func() {
		// No controller finishes the deletion here, so remove everything that would affect later tests.
		ctx := context.Background()
		for _, kind := range []client.Object{&v1alpha1.CryptoProfile{}, &corev1.Pod{}} {
			// The API server gives up or ends the connection after a minute, in which a busy machine does not delete hundreds of pods.
			err := retry.OnError(wait.Backoff{Steps: 5}, func(error) bool { return true }, func() error {
				return apiServer.DeleteAllOf(ctx, kind, client.InNamespace(ns.Name), client.GracePeriodSeconds(0))
			})
			if err != nil {
				t.Error(err)
			}
		}
		if err := apiServer.Delete(ctx, ns); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return ns.Name
}

func hashing(namespace, name, algorithm string) *v1alpha1.CryptoProfile {
	return &v1alpha1.CryptoProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.ProfileSpec{API: v1alpha1.Operations{HashData: &v1alpha1.HashData{HashAlg: algorithm}}},
	}
}

func clusterHashing(name, algorithm string, selector map[string]string) *v1alpha1.ClusterCryptoProfile {
	p := &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.API.HashData = &v1alpha1.HashData{HashAlg: algorithm}
	p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: selector}
	return p
}

// create makes an object; a cluster-wide one is deleted when the test ends.
func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := apiServer.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if _, ok := object.(*v1alpha1.ClusterCryptoProfile); ok {
		t.Cleanup(func() {
			if err := apiServer.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		})
	}
}

// update changes an object until that succeeds.
func update[T client.Object](t *testing.T, object T, change func(T)) {
	t.Helper()
	eventually(t, "the object is changed", func() error {
		if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return apiServer.Update(t.Context(), object)
	})
}

// patience is how long a test waits for something that should take a moment.
const patience = time.Minute

var eventually = apiserver.Eventually

// file returns the profile file in a namespace's ConfigMap.
func file(t *testing.T, namespace string) (string, error) {
	var set corev1.ConfigMap
	err := apiServer.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: v1alpha1.ProfilesConfigMap}, &set)
	return set.Data["Profiles.yaml"], err
}

// expectFile waits until the profile file of the namespace equals the given file.
func expectFile(t *testing.T, namespace, want string) {
	t.Helper()
	eventually(t, "the profile file is as expected", func() error {
		found, err := file(t, namespace)
		if err != nil {
			return err
		}
		if found != want {
			return fmt.Errorf("found\n%s\nexpected\n%s", found, want)
		}
		return nil
	})
}

// expectNoFile waits until the namespace has no ConfigMap, or one without a
// profile file.
func expectNoFile(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, "there is no profile file", func() error {
		if found, err := file(t, namespace); found != "" || client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("found %q: %w", found, err)
		}
		return nil
	})
}

func fileOf(profiles ...string) string {
	text := ""
	for i := 0; i < len(profiles); i += 2 {
		text += fmt.Sprintf("- Name: %s\n  API:\n    HashData:\n      HashAlg: %s\n", profiles[i], profiles[i+1])
	}
	return text
}
