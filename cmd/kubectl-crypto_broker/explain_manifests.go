// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// explain tells of each pod in manifests whether it would get a broker.
func (o *offline) explain(cmd *cobra.Command) error {
	documents, err := readObjects(*o.files, cmd.InOrStdin())
	if err != nil {
		return err
	}
	labelled := labelledNamespaces(documents)
	seen, wrong := 0, false
	for _, d := range documents {
		for _, item := range d.items() {
			p, err := item.template(o.namespace)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", item.place, item.name(), err)
			}
			if p == nil {
				continue
			}
			seen++
			said, bad, err := o.verdict(p, labelled)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", item.place, item.name(), err)
			}
			if misplaced := item.misplaced(); misplaced != "" {
				said += " Its " + misplaced + "."
				_, says := p.pod.Annotations[contract.InjectAnnotation]
				bad = bad || !says && item.text("metadata", "annotations", contract.InjectAnnotation) == "true"
			}
			wrong = wrong || bad
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s in namespace %s: %s\n", item.place, item.name(), p.namespace, said)
		}
	}
	if seen == 0 {
		fmt.Fprintln(cmd.OutOrStdout(), "There is no pod in these manifests, and nothing that makes pods.")
	}
	if wrong {
		return errFound
	}
	return nil
}

// misplaced says of an annotation that it is in the wrong place, empty if none is.
func (d document) misplaced() string {
	value := d.text("metadata", "annotations", contract.InjectAnnotation)
	if value == "" || d.text("kind") == "Pod" {
		return ""
	}
	return fmt.Sprintf("own annotation %s: %q has no effect: it belongs to the template", contract.InjectAnnotation, value)
}

// verdict says what would become of a pod; bad if it would be refused.
func (o *offline) verdict(p *podTemplate, labelled map[string]bool) (said string, bad bool, err error) {
	decision, err := o.wants(p, labelled)
	if err == nil && decision.Inject {
		_, _, err = injection.Inject(p.pod, p.namespace, nil, o.template)
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
