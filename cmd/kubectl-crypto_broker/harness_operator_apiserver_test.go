// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
	operatorcontrollers "github.com/crypto-broker/crypto-broker-operator/controllers"
	controllerconfirm "github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
	"github.com/crypto-broker/crypto-broker-operator/controllers/keyproviders"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

// signingSecret is the Secret of the operator that reconcile starts.
const signingSecret = "crypto-broker-operator-signing"

// reconcile runs the operator's reconcilers until the test ends, without its webhooks. It
// returns a client for the objects of this project.
func reconcile(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: installation.DefaultNamespace}}
	if _, err := apiServer.CoreV1().Namespaces().Create(t.Context(), own, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	skip := true
	mgr, err := ctrl.NewManager(apiServerConfig, ctrl.Options{
		Scheme: scheme, Cache: operatorcontrollers.CacheOptions(own.Name), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := signing.New(apiServerConfig, signing.Options{
		Namespace: own.Name, SecretName: signingSecret, Lifetime: signing.DefaultLifetime,
		Pods: mgr.GetClient(), Elected: mgr.Elected(), Events: mgr.GetEventRecorder(v1alpha1.FieldManager),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(keys); err != nil {
		t.Fatal(err)
	}
	asking := controllerconfirm.NewLoopbackClient()
	err = operatorcontrollers.Setup(mgr, operatorcontrollers.Options{
		OperatorNamespace: own.Name, StatusPort: 9470, Ask: asking.Ask, AskGateway: keyproviders.AskBy(asking), Keys: keys, Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the operator ended with: %v", err)
		}
		asking.Close()
	})
	direct, err := client.New(apiServerConfig, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return direct
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
