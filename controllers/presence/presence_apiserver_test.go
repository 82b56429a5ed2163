// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package presence

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

var (
	// apiServer is the client of the tests, with all rights.
	apiServer client.Client
	// operatorConfig is used by the operator, with the rights of config/rbac.
	operatorConfig *rest.Config
	scheme         = runtime.NewScheme()
)

func TestMain(m *testing.M) {
	os.Exit(apiserver.Run(m, func(admin *rest.Config) (err error) {
		for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme, rbacv1.AddToScheme} {
			if err := add(scheme); err != nil {
				return err
			}
		}
		if apiServer, err = client.New(admin, client.Options{Scheme: scheme}); err != nil {
			return err
		}
		operatorConfig, err = apiserver.OperatorAccess(context.Background(), admin)
		return err
	}))
}

// start runs the search until the test ends.
func start(t *testing.T, change ...func(*Options)) *prometheus.Registry {
	t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(operatorConfig, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:       {Transform: distribute.StripPod},
			&corev1.ConfigMap{}: {Field: fields.OneTermEqualSelector("metadata.name", v1alpha1.ProfilesConfigMap)},
		}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	options := testOptions()
	for _, change := range change {
		change(&options)
	}
	registry := prometheus.NewRegistry()
	options.Metrics = registry
	if err := Setup(mgr, options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return registry
}

func namespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: labels}}
	create(t, ns)
	return ns.Name
}

func create[T client.Object](t *testing.T, object T) T {
	t.Helper()
	if err := apiServer.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// pod makes a pod that belongs to the owner, nil for none.
func pod(t *testing.T, namespace string, owner client.Object, change ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "app-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	for _, change := range change {
		change(p)
	}
	for i := range p.Spec.InitContainers {
		p.Spec.InitContainers[i].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	}
	if owner != nil {
		if err := controllerutil.SetControllerReference(owner, p, scheme); err != nil {
			t.Fatal(err)
		}
	}
	return create(t, p)
}

// deployment makes a Deployment with a ReplicaSet, as the controller would.
func deployment(t *testing.T, namespace, name string) (*appsv1.Deployment, *appsv1.ReplicaSet) {
	t.Helper()
	labels := map[string]string{"app": name}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	d := create(t, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	})
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-1"},
		Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}
	if err := controllerutil.SetControllerReference(d, set, scheme); err != nil {
		t.Fatal(err)
	}
	return d, create(t, set)
}

var eventually = apiserver.Eventually

// expectEvent waits for exactly one event of the reason on the object.
func expectEvent(t *testing.T, object client.Object, reason, says string) {
	t.Helper()
	eventually(t, "there is an event "+reason+" on "+object.GetName(), func() error {
		notes := eventsOn(t, object, reason)
		if len(notes) != 1 || !strings.Contains(notes[0], says) {
			return fmt.Errorf("found %q", notes)
		}
		return nil
	})
}

func eventsOn(t *testing.T, object client.Object, reason string) (notes []string) {
	t.Helper()
	var all eventsv1.EventList
	if err := apiServer.List(t.Context(), &all, client.InNamespace(object.GetNamespace())); err != nil {
		t.Fatal(err)
	}
	for _, e := range all.Items {
		if e.Regarding.UID == object.GetUID() && e.Reason == reason {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

// expectNumbers waits until a namespace has these numbers, -1 for none.
func expectNumbers(t *testing.T, registry *prometheus.Registry, namespace string, missing, outdated float64) {
	t.Helper()
	eventually(t, "the numbers are as expected", func() error {
		found := map[string]float64{"crypto_broker_operator_pods_without_broker": -1, "crypto_broker_operator_pods_outdated": -1}
		families, err := registry.Gather()
		if err != nil {
			return err
		}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if metric.GetLabel()[0].GetValue() == namespace {
					found[family.GetName()] = metric.GetGauge().GetValue()
				}
			}
		}
		if found["crypto_broker_operator_pods_without_broker"] != missing || found["crypto_broker_operator_pods_outdated"] != outdated {
			return fmt.Errorf("found %v", found)
		}
		return nil
	})
}

func TestPodsWithoutTheirBrokerAreCountedAndTheirOwnersTold(t *testing.T) {
	registry := start(t)
	ns := namespace(t, nil)
	asked := annotated(contract.InjectAnnotation, "true")
	d, set := deployment(t, ns, "orders")
	first := pod(t, ns, set, asked)
	pod(t, ns, set, asked, withBroker("broker:1"))
	alone := pod(t, ns, nil, asked)
	pod(t, ns, nil)
	expectNumbers(t, registry, ns, 2, 0)
	expectEvent(t, d, "BrokerMissing", "1 of 2 pods is without a broker and should have one")
	expectEvent(t, d, "BrokerMissing", "kubectl crypto-broker restart deployment/orders -n "+ns)
	expectEvent(t, alone, "BrokerMissing", "The pod is without a broker and should have one")
	for _, p := range []*corev1.Pod{first, alone} {
		if err := apiServer.Delete(t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	expectNumbers(t, registry, ns, -1, -1)
	if notes := eventsOn(t, d, "BrokerMissing"); len(notes) != 1 {
		t.Errorf("the owner was told %q", notes)
	}
}

func TestPodsWithAnOutdatedBrokerAreCountedAndTheirOwnersTold(t *testing.T) {
	registry := start(t)
	ns := namespace(t, nil)
	job := create(t, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "report"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "app", Image: "app"}},
		}}},
	})
	pod(t, ns, job, annotated(contract.InjectAnnotation, "true"), withBroker("broker:0"))
	expectNumbers(t, registry, ns, 0, 1)
	expectEvent(t, job, "BrokerOutdated", "It goes on working. It has to be created again.")
}

func TestTheLabelOfANamespaceMakesItsPodsMissTheirBroker(t *testing.T) {
	registry := start(t)
	ns := namespace(t, nil)
	d, set := deployment(t, ns, "orders")
	pod(t, ns, set)
	pod(t, ns, set, annotated(contract.InjectAnnotation, "false"))
	label := func(value string) {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, contract.InjectionLabel, value)
		if err := apiServer.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	label(contract.InjectionEnabled)
	expectNumbers(t, registry, ns, 1, 0)
	expectEvent(t, d, "BrokerMissing", "1 of 2 pods is without a broker")
	label("off")
	expectNumbers(t, registry, ns, -1, -1)
}

func TestOwnersAreToldOfBrokersThatWaitForAFirstProfile(t *testing.T) {
	start(t)
	asked, broker := annotated(contract.InjectAnnotation, "true"), withBroker("broker:1")
	served, emptied, bare := namespace(t, nil), namespace(t, nil), namespace(t, nil)
	for ns, file := range map[string]string{served: "- Name: P\n  API: {HashData: {HashAlg: sha-256}}\n", emptied: "[]\n"} {
		create(t, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: v1alpha1.ProfilesConfigMap},
			Data:       map[string]string{"Profiles.yaml": file, "Profiles.sig": "{}"},
		})
	}
	other, otherSet := deployment(t, served, "orders")
	last, lastSet := deployment(t, emptied, "orders")
	d, set := deployment(t, bare, "orders")
	for _, p := range []*corev1.Pod{pod(t, served, otherSet, asked, broker), pod(t, emptied, lastSet, asked, broker), pod(t, bare, set, asked, broker)} {
		running(time.Now().Add(-waitGrace))(p)
		if err := apiServer.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	expectEvent(t, d, "BrokerWaiting", "The pod is waiting for a first profile and can't start: namespace "+bare+" has no CryptoProfile")
	expectEvent(t, last, "BrokerWaiting", "The pod is waiting for a first profile and can't start: namespace "+emptied+" has no CryptoProfile")
	if notes := eventsOn(t, other, "BrokerWaiting"); len(notes) != 0 {
		t.Errorf("the owner of a pod whose namespace has a set was told %q", notes)
	}
}

func TestManyOwnersAreToldLittleByLittleAndAllOfThem(t *testing.T) {
	registry := start(t)
	ns := namespace(t, nil)
	const many = eventBurst + 5
	var pods []*corev1.Pod
	for range many {
		pods = append(pods, pod(t, ns, nil, annotated(contract.InjectAnnotation, "true")))
	}
	expectNumbers(t, registry, ns, many, 0)
	for _, p := range pods {
		expectEvent(t, p, "BrokerMissing", "The pod is without a broker")
	}
}

func TestALabelWithoutEffectIsToldOnItsNamespace(t *testing.T) {
	early := namespace(t, map[string]string{contract.InjectionLabel: "true"})
	start(t)
	object := func(name string) *corev1.Namespace {
		ns := &corev1.Namespace{}
		if err := apiServer.Get(t.Context(), client.ObjectKey{Name: name}, ns); err != nil {
			t.Fatal(err)
		}
		return ns
	}
	expectEvent(t, object(early), "InjectionLabelWithoutEffect", `is "true" and has no effect, expected "enabled"`)
	late := object(namespace(t, map[string]string{contract.InjectionLabel: contract.InjectionEnabled}))
	patch := []byte(`{"metadata":{"labels":{"` + contract.InjectionLabel + `":"Enabled"}}}`)
	if err := apiServer.Patch(t.Context(), late, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
	expectEvent(t, late, "InjectionLabelWithoutEffect", `is "Enabled" and has no effect`)
}
