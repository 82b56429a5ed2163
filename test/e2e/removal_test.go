// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// removal removes parts of the operator while pods of a namespace make calls.
type removal struct {
	namespace string
	// serving are pods that have to serve all the time. ending are pods with a broker that are deleted, one after the
	// other, while parts of the operator are missing.
	serving []corev1.Pod
	ending  []*corev1.Pod
	// file is the set of the namespace.
	file string
}

func TestTheOperatorIsRemovedInAnyOrderWhilePodsCall(t *testing.T) {
	restoreChart(t)
	r := &removal{namespace: newNamespace(t, nil)}
	kept := createProfile(t, r.namespace, "sha-256")
	must(t, shared.client.Create(t.Context(), appDeployment(r.namespace, "app", 2, load)))
	r.serving = readyPods(t, r.namespace, "app=app", 2)
	for range 2 {
		r.ending = append(r.ending, createPod(t, appPod(r.namespace, inject("true"), nil)))
	}
	awaitPropagated(t, kept, 4)
	kustomization := filepath.Join(shared.Repository, "config", "default")
	pace := time.NewTicker(20 * time.Millisecond) // these pods do not belong to the load of the test
	defer pace.Stop()
	admitted := askAllTheTime(t, "pods that ask for no broker", func(ctx context.Context) error {
		<-pace.C
		return shared.client.Create(ctx, appPod(r.namespace, nil, nil), client.DryRunAll)
	})

	t.Run("the webhook of pods alone: profiles are written, and helm upgrade heals", func(t *testing.T) {
		kubectlDelete(t, "mutatingwebhookconfiguration", environment.Release)
		eventually(t, patience, "pods that ask are refused, with the way out", func() error {
			if err := admit(t.Context(), r.namespace); err == nil || !strings.Contains(err.Error(), "helm upgrade puts the MutatingWebhookConfiguration back") {
				return fmt.Errorf("found %w", err)
			}
			return nil
		})
		expectReadyWithout(t, "MutatingWebhookConfiguration")
		changed := changeHash(t, kept, "sha3-512")
		for i := range r.serving {
			awaitAlgorithm(t, &r.serving[i], "sha3-512", changed, changeTimeout)
		}
		r.file = profilesConfigMap(t, r.namespace).Data[profile.FileName]
		r.install(t)
	})

	t.Run("the definitions, then helm uninstall", func(t *testing.T) {
		deleteDefinitions(t)
		r.expectUntouched(t)
		uninstall(t)
		deleteLease(t)
		r.expectUntouched(t)
		r.install(t)
		awaitPropagated(t, r.profile(), int32(len(r.serving)+len(r.ending)))
	})

	t.Run("kubectl delete -k", func(t *testing.T) {
		kubectlDelete(t, "-k", kustomization)
		r.expectUntouched(t)
		r.install(t)
	})

	t.Run("the namespace, then the definitions, and the webhooks last", func(t *testing.T) {
		kubectlDelete(t, "namespace", environment.Namespace)
		expectRefused(t, admit(t.Context(), r.namespace), "annotated.inject.cryptobroker.io")
		deleteDefinitions(t)
		r.expectUntouched(t)
		kubectlDelete(t, "-k", kustomization)
		r.install(t)
	})
	admitted()
}

// expectUntouched fails the test unless brokers serve, the set is as it was, a pod with a broker ends, and a pod that asks
// for none starts.
func (r *removal) expectUntouched(t *testing.T) {
	t.Helper()
	plain := createPod(t, appPod(r.namespace, nil, nil))
	kubectlDelete(t, "pod", "-n", r.namespace, r.ending[0].Name, plain.Name)
	r.ending = r.ending[1:]
	expectCallsGoOn(t, r.serving)
	if found := profilesConfigMap(t, r.namespace).Data[profile.FileName]; found != r.file {
		t.Errorf("found the set\n%s\nexpected it unchanged:\n%s", found, r.file)
	}
}

func (r *removal) profile() *v1alpha1.CryptoProfile {
	return &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: r.namespace}, Spec: hashing("Default", "sha3-512")}
}

// install installs the chart over the remaining objects. If the profile was deleted with its definition, it creates the profile
// again. Then it waits until a new pod serves it.
func (r *removal) install(t *testing.T) {
	t.Helper()
	_, err := shared.helm.Install(t.Context(), environment.Chart(shared.Repository), &shared.Images)
	must(t, err)
	awaitLeader(t)
	eventually(t, patience, "the profile can be made", func() error {
		if err := shared.client.Create(t.Context(), r.profile()); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
	eventually(t, patience, "pods are injected", func() error { return admit(t.Context(), r.namespace) })
	fresh := createPod(t, appPod(r.namespace, inject("true"), nil))
	awaitCalls(t, fresh, statsPort, nil, 10)
	if found := mustStats(t, fresh); found.Algorithm != "sha3-512" {
		t.Errorf("a new pod is served %s, expected sha3-512", found.Algorithm)
	}
	r.ending = append(r.ending, fresh)
	expectCallsGoOn(t, r.serving)
}

// expectReadyWithout waits until each replica of the operator reports that a webhook configuration is missing. It fails the test if
// a replica is not ready then, because nobody could write profiles.
func expectReadyWithout(t *testing.T, kind string) {
	t.Helper()
	pods, err := shared.clientset.CoreV1().Pods(environment.Namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i := range pods.Items {
		replica := &pods.Items[i]
		eventually(t, patience, replica.Name+" reports what is missing", func() error {
			metrics, err := podGet(t.Context(), replica, 8080, "metrics")
			if want := fmt.Sprintf("crypto_broker_operator_webhook_configuration_missing{kind=%q} 1", kind); err == nil && !strings.Contains(string(metrics), want) {
				err = fmt.Errorf("found no line %s", want)
			}
			return err
		})
		if _, err := podGet(t.Context(), replica, 8081, "readyz"); err != nil {
			t.Errorf("%s is not ready: %v", replica.Name, err)
		}
	}
}

// kubectlDelete deletes the given objects that exist, and waits until they are gone.
func kubectlDelete(t *testing.T, arguments ...string) {
	t.Helper()
	if output, err := kubectl(t, "", append([]string{"delete", "--ignore-not-found", "--timeout=90s"}, arguments...)...); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

func deleteDefinitions(t *testing.T) {
	t.Helper()
	kubectlDelete(t, "crd", "cryptoprofiles.cryptobroker.io", "clustercryptoprofiles.cryptobroker.io", "injectiontemplates.cryptobroker.io")
}
