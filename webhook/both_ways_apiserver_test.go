// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package webhook

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
)

// podsBothWays is how many random pods are created both ways.
const podsBothWays = 600

// namespacesBothWays are the namespaces of the random pods. The API servers have kube-system from the
// beginning.
var namespacesBothWays = []*corev1.Namespace{
	{ObjectMeta: metav1.ObjectMeta{Name: "plain"}},
	{ObjectMeta: metav1.ObjectMeta{Name: "labelled", Labels: fixture.Enabled}},
	{ObjectMeta: metav1.ObjectMeta{Name: "other-label", Labels: map[string]string{"cryptobroker.io/injection": "Enabled"}}},
	{ObjectMeta: metav1.ObjectMeta{Name: "user-ids", Annotations: map[string]string{userRangeAnnotation: "1000700000/10000"}}},
	{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}},
}

// outcome is what an API server makes of a pod.
type outcome struct {
	pod *corev1.Pod
	err error
}

// differences are those that docs/injection-by-policy.md declares. Each is between what the webhook and what the
// policies make of a pod.
var differences = map[string]func(sent *corev1.Pod, webhook, policies outcome) bool{
	// A policy can't compare paths as the kubelet does.
	"pods with a mount that covers the socket's directory, or with a read-only volume above it": func(_ *corev1.Pod, webhook, policies outcome) bool {
		return policies.err == nil && (webhook.says("where the broker's socket has to be") || webhook.says("where no directory for the broker's socket can be made"))
	},
	// A policy does not replace a broker. It accepts what it would add itself.
	"a copy of an injected pod": func(sent *corev1.Pod, webhook, policies outcome) bool {
		_, stamped := sent.Annotations[contract.InjectedAnnotation]
		switch {
		case policies.err != nil:
			return stamped && webhook.err == nil
		case webhook.err != nil:
			return containerOfBroker(sent) != nil && (!stamped && webhook.says("without the annotation "+contract.InjectedAnnotation) ||
				sent.Annotations[contract.InjectAnnotation] == "" && webhook.says("metadata.annotations["+contract.ContainersAnnotation+"]"))
		}
		return stamped && containerOfBroker(sent) != nil && cmp.Diff(containerOfBroker(webhook.pod), containerOfBroker(policies.pod), cmpopts.EquateEmpty()) == ""
	},
	// A policy can't add up the resources of the other containers.
	"a pod whose other containers are `Guaranteed`": func(_ *corev1.Pod, webhook, policies outcome) bool {
		if webhook.err != nil || webhook.pod.Status.QOSClass != corev1.PodQOSGuaranteed {
			return false
		}
		return policies.says("of the broker, ") ||
			policies.err == nil && policies.pod.Status.QOSClass == corev1.PodQOSBurstable && differenceOf(withoutAmounts(webhook.pod), withoutAmounts(policies.pod)) == ""
	},
}

// says reports whether the pod was refused with a text.
func (o outcome) says(text string) bool { return o.err != nil && strings.Contains(o.err.Error(), text) }

// A pod has the same fate and the same broker whether the webhook injects or the policies do, except for what
// the documentation declares.
func TestThePoliciesMakeOfARandomPodWhatTheWebhookMakes(t *testing.T) {
	if !apiserver.ServesMutatingPolicies(t, access) {
		// An API server without such policies leaves the webhook as the only way.
		const refused = "expected one that serves MutatingAdmissionPolicy"
		if err := apiserver.CreateFromChart(t.Context(), access, "templates/injection/inject.yaml", "injection.mode=policy"); err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("found %v, expected a refusal with %q", err, refused)
		}
		return
	}
	byPolicies := startPolicies(t)
	startOperator(t)
	for _, namespace := range namespacesBothWays {
		if namespace.Name == "kube-system" {
			continue
		}
		for _, kubernetes := range []client.Client{admin, byPolicies} {
			if err := kubernetes.Create(t.Context(), namespace.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen, accepted, injected := map[string]int{}, 0, 0
	for seed := range int64(podsBothWays) {
		r := rand.New(rand.NewSource(seed))
		pod := contendedPod(t, r)
		pod.Namespace = namespacesBothWays[[]int{0, 0, 0, 0, 1, 1, 1, 2, 3, 4}[r.Intn(10)]].Name
		webhook, policies := bothWays(t.Context(), byPolicies, pod)
		problem := compareBothWays(pod, webhook, policies)
		if problem != "" {
			for name, applies := range differences {
				if applies(pod, webhook, policies) {
					seen[name]++
					problem = ""
				}
			}
		}
		if problem != "" {
			t.Errorf("seed %d: %s\n%s", seed, problem, fixture.JSON(t, pod))
		}
		if webhook.err == nil {
			accepted++
			if containerOfBroker(webhook.pod) != nil {
				injected++
			}
		}
	}
	t.Logf("%d of %d pods were accepted, %d with a broker; declared differences: %v", accepted, podsBothWays, injected, seen)
	if injected < podsBothWays/4 || podsBothWays-accepted < podsBothWays/4 {
		t.Errorf("of %d pods %d were accepted and %d got a broker: the test says little", podsBothWays, accepted, injected)
	}
	for name := range differences {
		if seen[name] == 0 {
			t.Errorf("no pod shows the declared difference %q: the test has to make one, or the difference is none any more", name)
		}
	}
}

// startPolicies starts an API server whose policies inject with the template of startOperator.
func startPolicies(t *testing.T) client.Client {
	t.Helper()
	config := rest.CopyConfig(apiserver.StartFor(t))
	config.QPS = -1
	kubernetes, err := client.New(config, client.Options{Scheme: apiServerScheme()})
	if err != nil {
		t.Fatal(err)
	}
	parameters, err := injection.Parameters(testTemplate(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := kubernetes.Create(t.Context(), &v1alpha1.InjectionTemplate{ObjectMeta: metav1.ObjectMeta{Name: "crypto-broker-operator"}, Spec: parameters}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"inject.yaml", "refuse.yaml"} {
		if err := apiserver.CreateFromChart(t.Context(), config, "templates/injection/"+file, "injection.mode=policy"); err != nil {
			t.Fatal(err)
		}
	}
	for _, labels := range []map[string]string{nil, fixture.Enabled} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "await-", Labels: labels}}
		if err := kubernetes.Create(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the policies inject and refuse", func() error {
			pod := fixture.PodWith(fixture.Asking("maybe"))
			pod.Namespace = namespace.Name
			if err := kubernetes.Create(t.Context(), pod, client.DryRunAll); err == nil || !strings.Contains(err.Error(), `expected "true"`) {
				return fmt.Errorf("answered %w", err)
			}
			pod = fixture.PodWith()
			pod.Namespace = namespace.Name
			if err := kubernetes.Create(t.Context(), pod, client.DryRunAll); err != nil {
				return err
			}
			if containerOfBroker(pod) == nil {
				return errors.New("a pod without a broker")
			}
			return nil
		})
	}
	return kubernetes
}

// bothWays creates a pod as a dry run, at the API server with the webhook and at the one with the policies.
func bothWays(ctx context.Context, byPolicies client.Client, pod *corev1.Pod) (webhook, policies outcome) {
	var wait sync.WaitGroup
	wait.Go(func() {
		webhook.pod = pod.DeepCopy()
		webhook.err = admin.Create(ctx, webhook.pod, client.DryRunAll)
	})
	policies.pod = pod.DeepCopy()
	policies.err = byPolicies.Create(ctx, policies.pod, client.DryRunAll)
	wait.Wait()
	return webhook, policies
}

var moreNames = regexp.MustCompile(` and [0-9]+ more\b`)

// compareBothWays returns what is different, or nothing. Of several problems, the policies report one. It has to be one of those that
// the webhook reports.
func compareBothWays(sent *corev1.Pod, webhook, policies outcome) string {
	switch {
	case webhook.err == nil && policies.err == nil:
		return differenceOf(webhook.pod, policies.pod)
	case webhook.err == nil:
		return "accepted with the webhook, and with the policies: " + policies.err.Error()
	case policies.err == nil:
		return "accepted with the policies, and with the webhook: " + webhook.err.Error()
	}
	_, sentence, aboutAnnotation := strings.Cut(policies.err.Error(), "denied request: metadata.annotations[")
	said := webhook.err.Error()
	switch {
	case !aboutAnnotation:
		return ""
	case strings.HasPrefix(sentence, contract.ContainersAnnotation+"]") || strings.Contains(said, "metadata.annotations["+contract.ContainersAnnotation+"]"):
		return "" // the webhook leaves names of containers that the pod does not have to a policy
	case strings.Contains(said, "metadata.annotations["+contract.InjectAnnotation+"]"):
		return "" // the webhook says no more about a pod that may not have asked
	case containerOfBroker(sent) != nil:
		return "" // which may serve other containers
	case moreNames.MatchString(said):
		return "" // at most ten names
	}
	if known, _, unknown := strings.Cut(sentence, "found an unknown annotation"); unknown {
		sentence = known // the webhook says which annotation was probably meant
	}
	if !strings.Contains(escaped(said), escaped("metadata.annotations["+sentence)) {
		return fmt.Sprintf("refused with different sentences:\n%v\n%v", webhook.err, policies.err)
	}
	return ""
}

// escaped writes characters that are not printable as the webhook does. The policies write most of them as they are.
func escaped(text string) string {
	var all strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			all.WriteRune(r)
		} else {
			all.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return all.String()
}

// differenceOf compares two accepted pods without what the API server gives each pod anew.
func differenceOf(webhook, policies *corev1.Pod) string {
	diff := cmp.Diff(webhook.Annotations, policies.Annotations, cmpopts.EquateEmpty()) + cmp.Diff(webhook.Labels, policies.Labels, cmpopts.EquateEmpty()) +
		cmp.Diff(webhook.Spec, policies.Spec, cmpopts.EquateEmpty())
	if diff != "" {
		return "the policies make another pod than the webhook (-webhook +policies):\n" + diff
	}
	return ""
}

// containerOfBroker returns the container with the broker's name, or nil.
func containerOfBroker(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == contract.BrokerContainer {
			return &pod.Spec.InitContainers[i]
		}
	}
	return nil
}

// withoutAmounts returns the pod without the resources of the broker.
func withoutAmounts(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	if broker := containerOfBroker(pod); broker != nil {
		broker.Resources = corev1.ResourceRequirements{}
	}
	return pod
}
