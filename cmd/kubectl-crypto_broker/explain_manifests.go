// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// explain prints for each pod in manifests whether it would get a broker.
func (o *offline) explain(cmd *cobra.Command) error {
	documents, err := manifest.ReadObjects(*o.files, cmd.InOrStdin())
	if err != nil {
		return err
	}
	labelled := manifest.LabelledNamespaces(documents)
	seen, wrong := 0, false
	for _, d := range documents {
		for _, item := range d.Items() {
			p, err := item.Template(o.namespace)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", item.Place, item.Name(), err)
			}
			if p == nil {
				continue
			}
			seen++
			said, bad, err := o.verdict(p, labelled)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", item.Place, item.Name(), err)
			}
			if misplaced := item.Misplaced(); misplaced != "" {
				said += " Its " + misplaced + "."
				_, says := p.Pod.Annotations[contract.InjectAnnotation]
				bad = bad || !says && item.Text("metadata", "annotations", contract.InjectAnnotation) == "true"
			}
			wrong = wrong || bad
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s in namespace %s: %s\n", item.Place, item.Name(), p.Namespace, said)
		}
	}
	if seen == 0 {
		fmt.Fprintln(cmd.OutOrStdout(), "There is no pod in these manifests, and no workload that creates pods.")
	}
	if wrong {
		return errFound
	}
	return nil
}

// verdict says whether a pod would get a broker; bad reports whether it would be
// refused.
func (o *offline) verdict(p *manifest.PodTemplate, labelled map[string]bool) (said string, bad bool, err error) {
	decision, err := o.wants(p, labelled)
	if err == nil && decision.Inject {
		_, _, err = injection.Inject(p.Pod, p.Namespace, nil, o.template)
	}
	var refusal *injection.Refusal
	switch {
	case errors.As(err, &refusal):
		return "is refused: " + refusal.Error(), true, nil
	case err != nil:
		return "", false, err
	case decision.Inject:
		return "gets a broker", false, nil
	}
	said = "gets no broker: " + decision.Reason
	if advice := wish(decision.Reason); advice != "" {
		said += ". " + advice
	}
	return said, false, nil
}
