// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// resync is the shortest time in which a kubelet notices a changed ConfigMap by itself. Propagation has to be faster.
const resync = 10 * time.Second

// changeTimeout is how long tests wait for a change if they do not test its speed. An operator that was restarted may have to wait
// until the lease of the previous leader expires, and then the kubelet may have to find the change by itself.
const changeTimeout = 2 * time.Minute

// load makes an application call about 180 times a second.
var load = workload.Load

// fleet is five pods under load in two namespaces, which serve a set of 100 profiles.
type fleet struct {
	pods    []corev1.Pod
	profile *v1alpha1.ClusterCryptoProfile // "Default", which the applications use
	next    int                            // index of the algorithm of the next change
}

func newFleet(t testing.TB) *fleet {
	t.Helper()
	label, profile := createSet(t, 100)
	f := &fleet{profile: profile}
	for _, replicas := range []int32{3, 2} {
		namespace := newNamespace(t, label)
		must(t, shared.client.Create(t.Context(), appDeployment(namespace, "app", replicas, load)))
		f.pods = append(f.pods, readyPods(t, namespace, "app=app", int(replicas))...)
	}
	for i := range f.pods {
		awaitCalls(t, &f.pods[i], statsPort, nil, 50)
	}
	return f
}

// change gives the profile another algorithm. It returns for each application the time from the beginning of the change to the
// first reply with the new algorithm.
func (f *fleet) change(t testing.TB, within time.Duration) []time.Duration {
	t.Helper()
	algorithm := algorithms[f.next%len(algorithms)]
	f.next++
	began := changeHash(t, f.profile, algorithm)
	took := make([]time.Duration, len(f.pods))
	for i := range f.pods {
		took[i] = awaitAlgorithm(t, &f.pods[i], algorithm, began, within)
	}
	return took
}

// awaitAlgorithm waits until an application has seen an algorithm in a reply after a change, and returns the time since the change.
// The application measures the time on the same machine.
func awaitAlgorithm(t testing.TB, pod *corev1.Pod, algorithm string, changed time.Time, within time.Duration) time.Duration {
	t.Helper()
	var seen time.Time
	eventually(t, within, fmt.Sprintf("the application in %s sees %s in a reply", pod.Name, algorithm), func() error {
		found, err := appStats(t, pod, statsPort)
		if err != nil {
			return err
		}
		at, ok := found.Seen(algorithm, changed)
		if !ok {
			return fmt.Errorf("it sees %s", found.Algorithm)
		}
		seen = at
		return nil
	})
	return seen.Sub(changed)
}

func TestTwentyChangesInARowReachEveryPodUnderLoadWithoutAFailedCall(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	var all []time.Duration
	for number := range 20 {
		took := f.change(t, resync)
		slowest := slices.Max(took)
		t.Logf("change %2d: the slowest of %d pods saw it after %.2f s", number+1, len(took), slowest.Seconds())
		if slowest > resync {
			t.Errorf("change %d took %.2f s, expected less than the kubelet's own resync", number+1, slowest.Seconds())
		}
		all = append(all, took...)
	}
	var calls int64
	for i := range f.pods {
		found := mustStats(t, &f.pods[i])
		expectNoFailure(t, &f.pods[i], found)
		calls += found.Calls
	}
	slices.Sort(all)
	t.Logf("20 changes, %d pods: median %.2f s, slowest %.2f s; %d calls", len(f.pods),
		all[len(all)/2].Seconds(), all[len(all)-1].Seconds(), calls)
}

func TestWithoutThePatchAChangeTakesAsLongAsTheKubeletsResync(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha-256")
	pod := createPod(t, appPod(namespace, inject("true"), nil))
	refuseAnnotations(t, pod)
	// The kubelet syncs a pod while the pod starts. After that nothing may cause another sync.
	awaitCalls(t, pod, statsPort, nil, 50)
	took := awaitAlgorithm(t, pod, "sha3-512", changeHash(t, profile, "sha3-512"), 150*time.Second)
	t.Logf("without the annotation patch, the change was seen after %.1f s", took.Seconds())
	if took <= resync {
		t.Errorf("without the patch the change took %.1f s, expected more than %s: what does the fast one measure?", took.Seconds(), resync)
	}
	expectNoFailure(t, pod, mustStats(t, pod))
}

// refuseAnnotations keeps the operator from annotating the pods of one namespace until the test ends. So their kubelets are not
// woken. It returns once the API server refuses such an annotation.
func refuseAnnotations(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "no-annotations-in-" + pod.Namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: pod.Namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/status"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "request.userInfo.username != '" + environment.OperatorUser + "'",
				Message:    "the test refuses annotations",
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: policy.ObjectMeta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	for _, object := range []client.Object{policy, binding} {
		must(t, shared.client.Create(t.Context(), object))
		t.Cleanup(func() {
			if err := shared.client.Delete(timeoutContext(t, time.Minute), object); err != nil {
				t.Errorf("removing %s: %v", object.GetName(), err)
			}
		})
	}
	operator := as(t, environment.OperatorUser)
	eventually(t, patience, "the operator may not annotate "+pod.Name, func() error {
		err := operator.Status().Patch(t.Context(), pod.DeepCopy(),
			client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"e2e"}}}`, contract.ProfilesDigestAnnotation)), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "the test refuses annotations") {
			return fmt.Errorf("it is answered with %w", err)
		}
		return nil
	})
}

func TestABrokerThatTheOperatorCannotReachIsUnverified(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	profile := createProfile(t, namespace, "sha-256")
	reached := createPod(t, appPod(namespace, inject("true"), nil))
	cut := createPod(t, appPod(namespace, inject("true"), nil))
	awaitPropagated(t, profile, 2)

	mend := dropPackets(t, cut.Status.PodIP, brokerStatusPort)
	changed := changeHash(t, profile, "sha3-512")
	for _, pod := range []*corev1.Pod{reached, cut} {
		awaitAlgorithm(t, pod, "sha3-512", changed, changeTimeout)
	}
	eventually(t, patience, "the profile's status says that one of two brokers is not verified", func() error {
		must(t, shared.client.Get(t.Context(), client.ObjectKeyFromObject(profile), profile))
		status := profile.Status
		condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionPropagated)
		if status.Pods != 2 || status.UpdatedPods != 1 || status.UnverifiedPods != 1 || condition == nil ||
			condition.ObservedGeneration != profile.Generation || condition.Status != metav1.ConditionUnknown ||
			condition.Reason != v1alpha1.ReasonUnverified {
			return fmt.Errorf("it is %+v", status)
		}
		t.Logf("Propagated: %s", condition.Message)
		return nil
	})
	mend()
	awaitPropagated(t, profile, 2)
	for _, pod := range []*corev1.Pod{reached, cut} {
		expectNoFailure(t, pod, mustStats(t, pod))
	}
}

// dropPackets makes the node drop packets from other pods to a pod's port, as a NetworkPolicy would, until mend is called or the
// test ends.
func dropPackets(t testing.TB, address string, port int) (mend func()) {
	t.Helper()
	rule := func(verb string) []string {
		return []string{"iptables", "-w", verb, "FORWARD", "-p", "tcp", "-d", address, "--dport", fmt.Sprint(port), "-j", "DROP"}
	}
	_, err := shared.cluster.Exec(t.Context(), rule("-I")...)
	must(t, err)
	dropping := true
	mend = func() {
		if !dropping {
			return
		}
		dropping = false
		if _, err := shared.cluster.Exec(timeoutContext(t, 30*time.Second), rule("-D")...); err != nil {
			t.Errorf("removing the iptables rule: %v", err)
		}
	}
	t.Cleanup(mend)
	return mend
}
