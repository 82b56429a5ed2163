// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/test/loopback"
	"github.com/crypto-broker/crypto-broker-operator/webhook/certificates"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
	webhookserver "github.com/crypto-broker/crypto-broker-operator/webhook/server"
)

const operatorNamespace = "crypto-broker-system"

var (
	// access is the access of the API server's administrator.
	access *rest.Config
	// admin is an administrator, to whom no rule of the operator applies.
	admin client.Client
	// port is the port of the webhooks while they are served.
	port int
)

func TestMain(m *testing.M) {
	os.Exit(apiserver.Run(m, func(admin *rest.Config) error { return prepare(context.Background(), admin) }))
}

// prepare applies the manifests of config, with the webhooks reached by a URL
// on loopback instead of a Service.
func prepare(ctx context.Context, config *rest.Config) (err error) {
	access = rest.CopyConfig(config)
	access.QPS = -1
	if admin, err = client.New(access, client.Options{Scheme: apiServerScheme()}); err != nil {
		return err
	}
	address, err := loopback.Reserve("127.0.0.1")
	if err != nil {
		return err
	}
	if port, err = strconv.Atoi(address[strings.LastIndex(address, ":")+1:]); err != nil {
		return err
	}
	for _, file := range []string{"default/namespace.yaml", "rbac/role.yaml", "rbac/binding.yaml", "webhook/mutating.yaml", "webhook/validating.yaml", "policies/named-containers.yaml", "policies/injected.yaml", "rbac/injection-template.yaml"} {
		if err := apply(ctx, filepath.Join("..", "config", file)); err != nil {
			return fmt.Errorf("config/%s: %w", file, err)
		}
	}
	return nil
}

func apply(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, document := range bytes.Split(data, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return err
		}
		if object.GetKind() == "" {
			continue
		}
		if object.GetKind() == "Role" || object.GetKind() == "RoleBinding" {
			object.SetNamespace(operatorNamespace)
		}
		if err := byURL(object); err != nil {
			return err
		}
		if err := admin.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// byURL makes the API server reach webhooks on this machine.
func byURL(object *unstructured.Unstructured) error {
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil || webhooks == nil {
		return err
	}
	for _, item := range webhooks {
		entry := item.(map[string]any)
		path, _, err := unstructured.NestedString(entry, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		entry["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://localhost:%d%s", port, path)}
	}
	return unstructured.SetNestedSlice(object.Object, webhooks, "webhooks")
}

func apiServerScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	return scheme
}

// operator is a running replica with the rights of the operator's service
// account and no others.
type operator struct {
	certificates *certificates.Certificates
	stop         func()
}

func certificateOptions() certificates.Options {
	return certificates.Options{
		Namespace:               operatorNamespace,
		SecretName:              "crypto-broker-operator-ca",
		ServiceName:             "crypto-broker-operator-webhook",
		FurtherNames:            []string{"localhost"},
		MutatingConfiguration:   "crypto-broker-operator",
		ValidatingConfiguration: "crypto-broker-operator",
	}
}

// startOperator serves the webhooks until the test ends or stop is called.
func startOperator(t *testing.T) *operator {
	t.Helper()
	return startOperatorWith(t, Options{Template: testTemplate()})
}

// startOperatorWith does the same with options. The options need no namespace.
func startOperatorWith(t *testing.T, options Options) *operator {
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
	mgr, err := manager.New(account, manager.Options{
		Scheme:  apiServerScheme(),
		Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Field: fields.OneTermEqualSelector("metadata.name", v1alpha1.ProfilesConfigMap)},
		}},
		WebhookServer: webhookserver.New(webhookserver.Options{Host: "127.0.0.1", Port: port, TLS: certs.TLSOption}),
	})
	if err != nil {
		t.Fatal(err)
	}
	options.OperatorNamespace = operatorNamespace
	if err := Register(mgr, options); err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(certs); err != nil {
		t.Fatal(err)
	}
	keepTemplate(t, options.Template)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the operator ended with %v", err)
		}
	})
	t.Cleanup(stop)
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
	return &operator{certificates: certs, stop: stop}
}

// keepTemplate writes the InjectionTemplate that an operator with this template keeps.
func keepTemplate(t *testing.T, template template.Template) {
	t.Helper()
	parameters, err := injection.Parameters(template, "")
	if err != nil {
		t.Fatal(err)
	}
	kept := &v1alpha1.InjectionTemplate{ObjectMeta: metav1.ObjectMeta{Name: "crypto-broker-operator"}}
	if _, err := controllerutil.CreateOrUpdate(t.Context(), admin, kept, func() error {
		kept.Spec = parameters
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// tryPod creates a pod as a dry run.
func tryPod(t *testing.T, namespace string, pod *corev1.Pod) (*corev1.Pod, error) {
	t.Helper()
	pod = pod.DeepCopy()
	pod.Namespace = namespace
	err := admin.Create(t.Context(), pod, client.DryRunAll)
	return pod, err
}

// newNamespace makes a namespace that no other test has.
func newNamespace(t *testing.T, labels, annotations map[string]string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: labels, Annotations: annotations}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// bundlesOf returns the caBundles of all webhooks.
func bundlesOf(ctx context.Context) (bundles [][]byte, err error) {
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	key := client.ObjectKey{Name: "crypto-broker-operator"}
	if err := errors.Join(admin.Get(ctx, key, &mutating), admin.Get(ctx, key, &validating)); err != nil {
		return nil, err
	}
	for _, entry := range mutating.Webhooks {
		bundles = append(bundles, entry.ClientConfig.CABundle)
	}
	for _, entry := range validating.Webhooks {
		bundles = append(bundles, entry.ClientConfig.CABundle)
	}
	return bundles, nil
}

var eventually = apiserver.Eventually
