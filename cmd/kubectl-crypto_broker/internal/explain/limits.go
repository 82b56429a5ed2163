// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/dryrun"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// Messages of the API server when a LimitRange or a ResourceQuota refuses a pod.
var (
	ofContainer = regexp.MustCompile(`(maximum|minimum) (cpu|memory) usage per Container is ([^ ,]+), but (request|limit) is ([^ ,\]]+?)[.\]]?(?:[ ,]|$)`)
	otherLimit  = regexp.MustCompile(`usage per (?:Container|Pod) is |max limit to request ratio per |` + dryrun.QuotaExceeded + `| failed quota: `)
	ofQuota     = regexp.MustCompile(dryrun.QuotaExceeded + `[^ ,]+, requested: ([^ ]+), used: `)
	unspecified = regexp.MustCompile(`must specify (\S+) for: (\S+)`)
)

// resourceAnnotations are the annotations for the resources of the broker, by the
// names that quotas use.
var resourceAnnotations = map[string]string{
	"requests.cpu": contract.CPURequestAnnotation, "limits.cpu": contract.CPULimitAnnotation,
	"requests.memory": contract.MemoryRequestAnnotation, "limits.memory": contract.MemoryLimitAnnotation,
}

// explainLimits explains a pod that a LimitRange or a ResourceQuota refuses: whether the broker
// is too large, which resources it takes, and how to change them. It tries the same pod without a
// broker to find that out. It returns false if something else refuses the pod.
func explainLimits(ctx context.Context, t dryrun.Trial, w workload.Workload, p *manifest.PodTemplate, refusal string, e *explanation) (advice string, limited bool) {
	if !otherLimit.MatchString(refusal) {
		return "", false
	}
	allowed := fmt.Sprintf("\nOr raise the limits of the namespace. To see them: kubectl describe limitranges,resourcequotas -n %s", p.Namespace)
	without, err := t.CreateWithout(ctx, p)
	if lacking := unspecified.FindStringSubmatch(refusal); lacking != nil {
		return sayUnspecified(w, lacking[1], lacking[2]) + allowed, true
	}
	switch {
	case errors.As(err, new(*injection.Refusal)):
		e.add("broker", "the pod does not fit without it, either")
		return "The limits of the namespace are too low for the pod even without a broker: lower the resources of its containers." + allowed, true
	case err != nil:
		return "Could not try whether the pod fits without its broker: " + apierror.OneLine(apierror.Plain(err)) + "." + allowed, true
	}
	takes, change := brokerTakes(refusal, without)
	e.add("broker", "the container %s does not fit: without it, the pod is admitted", contract.BrokerContainer)
	if takes == "" {
		takes = "what the chart's broker.resources say: by default it requests 32Mi of memory and 10m of CPU, and is limited to 128Mi"
	}
	e.add("broker", "takes %s", takes)
	return fmt.Sprintf("The broker does not fit. The annotations %s and %s of the template set its memory, 32Mi at least%s%s",
		contract.MemoryRequestAnnotation, contract.MemoryLimitAnnotation, w.SuchAs(change), allowed), true
}

// brokerTakes reads the resources of the broker from a refusal, and returns annotations with
// values that would fit. without is the same pod without a broker, which was admitted.
func brokerTakes(refusal string, without *corev1.Pod) (takes string, change map[string]string) {
	if found := ofContainer.FindStringSubmatch(refusal); found != nil {
		bound, what, least, kind, has := found[1], found[2], found[3], found[4], found[5]
		change = map[string]string{resourceAnnotations[kind+"s."+what]: least}
		if bound == "minimum" { // a request above the limit would be refused
			change[resourceAnnotations["limits."+what]] = least
		}
		return fmt.Sprintf("a %s of %s of %s", kind, has, what), change
	}
	found := ofQuota.FindStringSubmatch(refusal)
	if found == nil {
		return "", nil
	}
	var parts []string
	for item := range strings.SplitSeq(found[1], ",") {
		name, amount, _ := strings.Cut(item, "=")
		requested, err := resource.ParseQuantity(amount)
		if err != nil || resourceAnnotations[name] == "" {
			continue
		}
		kind, what, _ := strings.Cut(name, ".")
		others := sum(without, kind, corev1.ResourceName(what))
		requested.Sub(others)
		parts = append(parts, fmt.Sprintf("%s of the %s that the pod asks for as %s (%s)", requested.String(), amount, name, resourceAnnotations[name]))
	}
	return strings.Join(parts, ", and "), nil
}

// sum returns the requests or the limits of all containers of a pod together.
func sum(pod *corev1.Pod, kind string, name corev1.ResourceName) (all resource.Quantity) {
	for _, container := range pod.Spec.Containers {
		list := container.Resources.Requests
		if kind == "limits" {
			list = container.Resources.Limits
		}
		all.Add(list[name])
	}
	return all
}

// sayUnspecified explains the refusal of a quota that demands requests or limits which
// containers do not have.
func sayUnspecified(w workload.Workload, what, containers string) string {
	names := strings.Split(containers, ",")
	annotation := resourceAnnotations[what]
	i := slices.Index(names, contract.BrokerContainer)
	if i < 0 || annotation == "" {
		return fmt.Sprintf("A quota of the namespace demands %s of %s: set it in the template.", what, containers)
	}
	advice := ""
	if names = slices.Delete(names, i, i+1); len(names) > 0 {
		advice = fmt.Sprintf("\nThe template has to set it for %s, too.", strings.Join(names, ", "))
	}
	return fmt.Sprintf("A quota of the namespace demands %s of each container. The annotation %s of the template gives the broker one%s",
		what, annotation, w.SuchAs(map[string]string{annotation: "1"})) + advice
}
