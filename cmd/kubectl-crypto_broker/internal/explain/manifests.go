// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"io"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection/template"
)

// Manifests prints for each pod in manifests whether it would get a broker, and reports whether
// none would be refused. Objects without a namespace belong to namespace. wants decides about a
// pod without a cluster.
func Manifests(documents []manifest.Document, namespace string, template template.Template, wants func(*manifest.PodTemplate) (injection.Decision, error), out io.Writer) (fine bool, err error) {
	seen, fine := 0, true
	for _, d := range documents {
		for _, item := range d.Items() {
			p, err := item.Template(namespace)
			if err != nil {
				return false, fmt.Errorf("%s: %s: %w", item.Place, item.Name(), err)
			}
			if p == nil {
				continue
			}
			seen++
			decision, err := wants(p)
			if err == nil && decision.Inject {
				_, _, err = injection.Inject(p.Pod, p.Namespace, nil, template)
			}
			said, bad, err := verdict(decision, err)
			if err != nil {
				return false, fmt.Errorf("%s: %s: %w", item.Place, item.Name(), err)
			}
			if misplaced := item.Misplaced(); misplaced != "" {
				said += " Its " + misplaced + "."
				_, says := p.Pod.Annotations[contract.InjectAnnotation]
				bad = bad || !says && item.Text("metadata", "annotations", contract.InjectAnnotation) == "true"
			}
			fine = fine && !bad
			fmt.Fprintf(out, "%s: %s in namespace %s: %s\n", item.Place, item.Name(), p.Namespace, said)
		}
	}
	if seen == 0 {
		fmt.Fprintln(out, "There is no pod in these manifests, and no workload that creates pods.")
	}
	return fine, nil
}

// verdict returns a sentence about a pod of a manifest. bad reports whether the pod would be
// refused, because tried is an [injection.Refusal].
func verdict(decision injection.Decision, tried error) (said string, bad bool, err error) {
	var refusal *injection.Refusal
	switch {
	case errors.As(tried, &refusal):
		return "is refused: " + refusal.Error(), true, nil
	case tried != nil:
		return "", false, tried
	case decision.Inject:
		return "gets a broker", false, nil
	}
	said = "gets no broker: " + decision.Reason
	if advice := optInAdvice(decision.Reason); advice != "" {
		said += ". " + advice
	}
	return said, false, nil
}
