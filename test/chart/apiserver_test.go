// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package chart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

var scheme = runtime.NewScheme()

func init() {
	log.SetLogger(logr.Discard())
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
}

// patience is the longest wait for actions that the API server takes by itself. On a busy machine it takes a while to compile all policies.
const patience = 3 * time.Minute

// server is the API server that most tests share, with the chart installed.
var server *apiServer

// apiServer is a kube-apiserver and its etcd. There is no controller, no
// scheduler and no kubelet, and the operator does not run: its webhooks have no
// backend.
type apiServer struct {
	environment *envtest.Environment
	config      *rest.Config
	kubeconfig  string // path of a file
	helm        string // path of the program
}

func TestMain(m *testing.M) {
	code, err := runTests(context.Background(), m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func runTests(ctx context.Context, m *testing.M) (code int, err error) {
	server, err = startServer(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	if err := server.install(ctx); err != nil {
		return 0, err
	}
	if err := server.awaitPolicies(ctx); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// startServer starts an API server on free ports of loopback.
func startServer(ctx context.Context) (*apiServer, error) {
	assets, err := apiserver.Assets()
	if err != nil {
		return nil, err
	}
	helm, err := tool(ctx, "helm")
	if err != nil {
		return nil, err
	}
	s := &apiServer{environment: &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		ControlPlaneStartTimeout: 2 * time.Minute, // on a busy machine
		ControlPlaneStopTimeout:  time.Minute,
	}, helm: helm}
	if err := apiserver.Reserve(&s.environment.ControlPlane); err != nil {
		return nil, err
	}
	if s.config, err = s.environment.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the API server: %w", err), s.environment.Stop())
	}
	if err := s.writeKubeconfig(); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *apiServer) writeKubeconfig() error {
	user, err := s.environment.AddUser(envtest.User{Name: "cluster-admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	content, err := user.KubeConfig()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "kubeconfig-")
	if err != nil {
		return err
	}
	s.kubeconfig = file.Name()
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

func (s *apiServer) stop() error {
	err := s.environment.Stop()
	if s.kubeconfig != "" {
		err = errors.Join(err, os.Remove(s.kubeconfig))
	}
	return err
}

// runHelm runs helm against the server in the release's namespace.
func (s *apiServer) runHelm(ctx context.Context, arguments ...string) ([]byte, error) {
	return run(ctx, s.helm, append([]string{"--kubeconfig", s.kubeconfig, "--namespace", releaseNamespace}, arguments...)...)
}

func (s *apiServer) install(ctx context.Context, arguments ...string) error {
	_, err := s.runHelm(ctx, append([]string{"install", release, chartPath, "--create-namespace"}, arguments...)...)
	return err
}

// as returns a client for a user in groups. Without a user, it returns a client that may do everything.
func (s *apiServer) as(user string, groups ...string) (client.Client, error) {
	config := rest.CopyConfig(s.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return client.New(config, client.Options{Scheme: scheme})
}

func as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	c, err := server.as(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func clusterAdmin(t *testing.T) client.Client { return as(t, "") }

// operator is the client of the operator's service account, with the rights
// that the chart gives it.
func operator(t *testing.T) client.Client {
	return as(t, "system:serviceaccount:"+releaseNamespace+":"+release,
		"system:serviceaccounts", "system:serviceaccounts:"+releaseNamespace, "system:authenticated")
}

// namespaceAdmin is the client of a user who has the rights of the ClusterRole
// admin in a namespace. The user gets the roles that admin aggregates, because the controller that fills admin does not run here.
func namespaceAdmin(t *testing.T, namespace string) client.Client {
	t.Helper()
	user := "admin-of-" + namespace
	for _, role := range []string{"system:aggregate-to-admin", "system:aggregate-to-edit", "system:aggregate-to-view"} {
		create(t, clusterAdmin(t), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "admin-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		})
	}
	c := as(t, user, "system:authenticated")
	eventually(t, "the rights of "+user, func(ctx context.Context) error {
		return c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace))
	})
	return c
}

// namespaceFor makes a namespace for a test. The test does not delete it, because no controller runs that would empty it.
func namespaceFor(t *testing.T, labels map[string]string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: labels}}
	create(t, clusterAdmin(t), namespace)
	return namespace.Name
}

func create(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// eventually calls until there is no error, and fails with the last one.
func eventually(t *testing.T, what string, call func(context.Context) error) {
	t.Helper()
	if err := poll(t.Context(), call); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

func poll(ctx context.Context, call func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = call(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// awaitPolicies waits until the API server applies all policies, which it loads in the background. For each policy it sends a dry
// run of a request that only this policy refuses.
func (s *apiServer) awaitPolicies(ctx context.Context) error {
	admin, err := s.as("")
	if err != nil {
		return err
	}
	pod := brokerPod("default", "await-policies")
	if err := admin.Create(ctx, pod); err != nil {
		return err
	}
	operator, err := s.as("system:serviceaccount:"+releaseNamespace+":"+release, "system:authenticated")
	if err != nil {
		return err
	}
	probes := map[string]func(context.Context) error{
		"profiles-configmap": func(ctx context.Context) error {
			return admin.Create(ctx, profilesConfigMap("default"), client.DryRunAll)
		},
		"operator-objects": func(ctx context.Context) error {
			return operator.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}, client.DryRunAll)
		},
		"pod-status": func(ctx context.Context) error {
			return operator.SubResource("status").Patch(ctx, brokerPod("default", pod.Name), mergePatch(`{"metadata":{"labels":{"a":"b"}}}`), &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
		},
		"broker-pods": func(ctx context.Context) error {
			return admin.Patch(ctx, brokerPod("default", pod.Name), mergePatch(`{"metadata":{"annotations":{"cryptobroker.io/injected":"other"}}}`), client.DryRunAll)
		},
		"pod-bindings": func(ctx context.Context) error {
			return bind(ctx, admin, pod, map[string]string{"cryptobroker.io/injected": "other"})
		},
		"broker-exec": func(ctx context.Context) error {
			return s.connect(ctx, "", "exec", "default", pod.Name, "crypto-broker")
		},
	}
	for name, probe := range probes {
		err := poll(ctx, func(ctx context.Context) error {
			if err := probe(ctx); !apierrors.IsForbidden(err) {
				return fmt.Errorf("found %s, expected the policy to forbid the request", fmt.Sprint(err))
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("wait for the policy %s-%s: %w", release, name, err)
		}
	}
	return nil
}
