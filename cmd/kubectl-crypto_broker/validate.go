// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
	"github.com/crypto-broker/crypto-broker-operator/webhook"
)

func newValidate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate -f FILE...",
		Short: "Check profiles and annotated pods in manifests, without a cluster",
		Long: `Checks CryptoProfiles and ClusterCryptoProfiles by their schema, as the API server does, and by the compiler of
the broker; and pods that would get a broker by the code of the operator that puts it in. What passes here is what
a cluster of this version takes. All problems are told at once, each with file, object and field. Other objects
are not looked at.

What depends on the cluster is left out: conflicts of names between profiles, changes that make a profile weaker,
and whether Secrets and images exist.`,
		Example: `  ` + name + ` validate -f profiles/ -f deployment.yaml
  helm template . | ` + name + ` validate -f -`,
		Args: noArguments,
	}
	var o offline
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		documents, err := readDocuments(*o.files, cmd.InOrStdin())
		if err != nil {
			return err
		}
		schemas, err := readSchemas()
		if err != nil {
			return err
		}
		labelled := labelledNamespaces(documents)
		profiles, pods, bad := 0, 0, 0
		for _, d := range documents {
			for _, item := range d.items() {
				problems, warnings, err := o.validate(cmd.Context(), schemas, item, labelled, &profiles, &pods)
				if err != nil {
					return err
				}
				for _, problem := range problems {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %s: %s\n", item.place, item.name(), problem)
				}
				for _, warning := range warnings {
					fmt.Fprintf(cmd.ErrOrStderr(), noteMark+"%s: %s: %s\n", item.place, item.name(), warning)
				}
				bad += len(problems)
			}
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s and %s checked, %s\n", count(profiles, "profile"), count(pods, "pod with a broker", "pods with a broker"), count(bad, "problem"))
		if bad > 0 {
			return errFound
		}
		return nil
	}
	return cmd
}

// validate checks one object.
func (o *offline) validate(ctx context.Context, schemas schemas, d document, labelled map[string]bool, profiles, pods *int) (problems, warnings []string, err error) {
	if version := d.text("apiVersion"); version == v1alpha1.GroupVersion.String() {
		switch d.text("kind") {
		case "CryptoProfile":
			*profiles++
			var p v1alpha1.CryptoProfile
			return d.profile(ctx, schemas, &p, func() (string, *v1alpha1.ProfileSpec, field.ErrorList) { return p.Name, &p.Spec, nil })
		case "ClusterCryptoProfile":
			*profiles++
			var p v1alpha1.ClusterCryptoProfile
			return d.profile(ctx, schemas, &p, func() (string, *v1alpha1.ProfileSpec, field.ErrorList) {
				if p.Spec.NamespaceSelector == nil {
					return p.Name, &p.Spec.ProfileSpec, nil
				}
				return p.Name, &p.Spec.ProfileSpec, render.ValidateSelector(p.Spec.NamespaceSelector)
			})
		}
	}
	p, err := d.template(o.namespace)
	if err != nil || p == nil {
		return nil, nil, err
	}
	decision, err := o.wants(p, labelled)
	if err == nil && decision.Inject {
		*pods++
		_, warnings, err = webhook.Inject(p.pod, p.namespace, []byte{}, o.template)
	}
	var refusal *webhook.Refusal
	if errors.As(err, &refusal) {
		return refusal.Problems, nil, nil
	}
	return nil, warnings, err
}

// profile checks a profile by its schema, and what has the right shape by the
// compiler of the broker.
func (d document) profile(ctx context.Context, schemas schemas, into any, parts func() (string, *v1alpha1.ProfileSpec, field.ErrorList)) (problems, warnings []string, err error) {
	filled, problems, err := schemas.check(ctx, d.text("kind"), d.object)
	if err != nil || len(problems) > 0 {
		return problems, nil, err
	}
	if err := json.Unmarshal(filled, into); err != nil {
		return nil, nil, err
	}
	name, spec, errs := parts()
	for _, err := range append(errs, render.Validate(name, spec)...) {
		problems = append(problems, err.Field+": "+err.Detail)
	}
	if len(problems) == 0 {
		warnings = render.Warnings(name, spec)
	}
	return problems, warnings, nil
}

// count counts in words: "1 profile", "2 profiles".
func count(n int, one string, more ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(more) > 0:
		return fmt.Sprintf("%d %s", n, more[0])
	default:
		return fmt.Sprintf("%d %ss", n, one)
	}
}
