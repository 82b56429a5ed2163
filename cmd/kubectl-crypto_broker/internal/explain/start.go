// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// explainStart prints what a broker that has not started waits for, and returns advice if there
// is any.
func explainStart(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, namespaceLabels map[string]string, e *explanation) (advice string) {
	sets := brokers.NewSets(client)
	about := "has not started: "
	if warning := unmounted(ctx, client, pod); warning != "" {
		e.add("broker", "%s%s", about, warning)
		return adviseMount(pod, warning)
	}
	e.add("broker", "%s%s", about, brokers.Waiting(ctx, pod, sets))
	status := injected.BrokerStatus(pod)
	switch {
	case pod.Spec.NodeName == "":
		return ""
	case status != nil && status.State.Waiting != nil && slices.Contains([]string{"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName"}, status.State.Waiting.Reason):
		return fmt.Sprintf("The image comes from the chart's value broker.image, or from the annotation %s; the annotation %s names a Secret to pull it with.", contract.ImageAnnotation, contract.ImagePullSecretAnnotation)
	case status != nil && status.LastTerminationState.Terminated != nil && status.LastTerminationState.Terminated.Reason == "OOMKilled":
		return fmt.Sprintf("The broker needs more memory: the annotation %s of the template gives it more.", contract.MemoryLimitAnnotation)
	case sets.BaselineMissing(ctx, pod.Namespace):
		return explainBaseline(ctx, client, pod.Namespace, namespaceLabels, e)
	case sets.None(ctx, pod.Namespace):
		return explainNoProfile(ctx, client, pod.Namespace, namespaceLabels, e)
	}
	return ""
}

// unmounted returns the kubelet's message about a volume that it cannot mount. It is empty if
// there is none, or if the user may not read events.
func unmounted(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) string {
	events, err := client.CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
		"involvedObject.uid": string(pod.UID), "involvedObject.kind": "Pod", "reason": "FailedMount",
	}.String()})
	if err != nil || len(events.Items) == 0 {
		return ""
	}
	last := slices.MaxFunc(events.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return apierror.OneLine(last.Message)
}

// noSecret matches the kubelet's message about a Secret that does not exist.
var noSecret = regexp.MustCompile(`secret "([^"]+)" not found`)

// adviseMount returns what to do if a volume of a pod cannot be mounted.
func adviseMount(pod *corev1.Pod, warning string) string {
	found := noSecret.FindStringSubmatch(warning)
	if found == nil {
		return fmt.Sprintf("The pod waits until the volume can be mounted: kubectl describe pod %s -n %s says more.", pod.Name, pod.Namespace)
	}
	secret := found[1]
	for name := range strings.SplitSeq(pod.Annotations[contract.KeysAnnotation], ",") {
		if strings.TrimSpace(name) == secret {
			return fmt.Sprintf("The annotation %s names the Secret %s, which is not there. Create it, and the pod continues:\n  kubectl create secret generic %s -n %s --from-file=KEY_ID.key\n"+
				"Or correct the annotation where the pod comes from. docs/keys.md says what such a Secret contains",
				contract.KeysAnnotation, secret, secret, pod.Namespace)
		}
	}
	return fmt.Sprintf("The pod waits for the Secret %s, which its own volumes name. Create it in namespace %s, and the pod continues.", secret, pod.Namespace)
}

// listedProfiles is the maximum number of profiles that are read, and toldProfiles is the maximum
// number that the command prints.
const listedProfiles, toldProfiles = 100, 3

// explainNoProfile prints why a namespace has no profile that brokers could serve,
// and returns what to do.
func explainNoProfile(ctx context.Context, client kubernetes.Interface, namespace string, namespaceLabels map[string]string, e *explanation) (advice string) {
	profiles, known := profilesOf(ctx, client, namespace, namespaceLabels, e)
	if !known {
		return ""
	}
	var refused []string
	unwritten := false
	for _, p := range profiles {
		accepted := meta.FindStatusCondition(p.conditions, v1alpha1.ConditionAccepted)
		switch {
		case accepted == nil || accepted.Status == metav1.ConditionTrue:
			unwritten = true
		default:
			if refused = append(refused, p.name); len(refused) <= toldProfiles {
				e.add("profiles", "%s is not accepted (%s): %s", p.name, accepted.Reason, apierror.OneLine(accepted.Message))
			}
		}
	}
	switch {
	case unwritten:
		return fmt.Sprintf("There are profiles, and the operator has not given them to the brokers: check that it runs, and see kubectl get cprof,ccprof -n %s", namespace)
	case len(refused) > 0:
		return fmt.Sprintf("Correct a profile, and the pod continues: kubectl edit %s -n %s", refused[0], namespace)
	default:
		e.add("profiles", "namespace %s has no CryptoProfile, and no ClusterCryptoProfile selects it", namespace)
		return fmt.Sprintf("Apply a profile, and the pod continues: kubectl apply -n %s -f PROFILE.yaml\n"+
			"Examples are in docs/profiles.md; the chart's catalogue.enabled=true creates the profiles that applications know by name.", namespace)
	}
}

// profileOf is a profile that applies to a namespace.
type profileOf struct {
	// name has the short name of the kind: cprof/orders.
	name       string
	conditions []metav1.Condition
}

// profilesOf lists the profiles that apply to a namespace, CryptoProfiles of the namespace
// first. It returns false if these CryptoProfiles can't be read.
func profilesOf(ctx context.Context, client kubernetes.Interface, namespace string, namespaceLabels map[string]string, e *explanation) (all []profileOf, known bool) {
	var own v1alpha1.CryptoProfileList
	var cluster v1alpha1.ClusterCryptoProfileList
	if err := readProfiles(ctx, client, "namespaces/"+namespace+"/cryptoprofiles", &own); err != nil {
		e.add("profiles", "CryptoProfiles cannot be listed: %s", apierror.OneLine(apierror.Plain(err)))
		return nil, false
	}
	if err := readProfiles(ctx, client, "clustercryptoprofiles", &cluster); err != nil {
		e.add("profiles", "ClusterCryptoProfiles cannot be listed: %s", apierror.OneLine(apierror.Plain(err)))
	}
	for i := range own.Items {
		all = append(all, profileOf{"cprof/" + own.Items[i].Name, own.Items[i].Status.Conditions})
	}
	for i := range cluster.Items {
		if render.Selects(&cluster.Items[i].Spec, namespaceLabels) {
			all = append(all, profileOf{"ccprof/" + cluster.Items[i].Name, cluster.Items[i].Status.Conditions})
		}
	}
	return all, true
}

// readProfiles lists profiles up to a limit, because they only explain why none is served.
func readProfiles(ctx context.Context, client kubernetes.Interface, path string, into any) error {
	raw, err := apierror.Body(client.CoreV1().RESTClient().Get().AbsPath("/apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, path).
		Param("limit", fmt.Sprint(listedProfiles)).Do(ctx))
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
