// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/manifest"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

func newValidate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate -f FILE...",
		Short: "Check profiles and annotated pods in manifests, without a cluster",
		Long: `Checks CryptoProfiles and ClusterCryptoProfiles by their schema, as the API server does, and with the compiler of
the broker. Checks pods that would get a broker with the operator's code. A cluster of this version accepts what is
valid here. The command prints all problems at once, each with file, object and field. It only counts objects of
other kinds. It also checks profile files (Profiles.yaml).

It does not check what depends on the cluster: names that two profiles use, changes that make a profile weaker, and
whether Secrets and images exist. If a pod's annotation names a container that the pod does not have, the command
prints a note, because another injector may add it. If none does, the cluster refuses the pod.`,
		Example: `  ` + name + ` validate -f profiles/ -f deployment.yaml
  helm template . | ` + name + ` validate -f -`,
		Args:              subcommands.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	var o offline
	o.flags(cmd)
	o.namespaceFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		documents, err := manifest.ReadDocuments(*o.files, cmd.InOrStdin())
		if err != nil {
			return err
		}
		c := checker{offline: &o, labelled: manifest.LabelledNamespaces(documents)}
		if c.schemas, err = manifest.ReadSchemas(); err != nil {
			return err
		}
		for _, d := range documents {
			for _, item := range d.Items() {
				f, err := c.check(cmd.Context(), item)
				if err != nil {
					return err
				}
				for _, problem := range f.problems {
					fmt.Fprintln(cmd.OutOrStdout(), f.about+problem)
				}
				for _, warning := range f.warnings {
					fmt.Fprintln(cmd.ErrOrStderr(), noteMark+f.about+warning)
				}
				c.problems += len(f.problems)
			}
		}
		fmt.Fprintln(cmd.OutOrStdout(), c.summary())
		if c.problems > 0 {
			return errFound
		}
		return nil
	}
	return cmd
}

// findings are problems and notes about an object.
type findings struct {
	// about is the beginning of each line.
	about              string
	problems, warnings []string
}

// checker checks objects and counts them.
type checker struct {
	*offline
	schemas  manifest.Schemas
	labelled map[string]bool

	sets, profiles, templates, pods, without, problems int
	// other counts the objects of kinds that are not checked.
	other map[string]int
}

// check checks one object.
func (c *checker) check(ctx context.Context, d manifest.Document) (f findings, err error) {
	f.about = d.Place + ": "
	kind, version := d.Text("kind"), d.Text("apiVersion")
	switch {
	case d.Bad != "":
		f.problems = []string{d.Bad}
		return f, nil
	case d.Set:
		f.about = ""
		c.sets++
		set, problems := profile.Compile(d.Place, d.Raw)
		for _, p := range problems {
			f.problems = append(f.problems, p.String())
		}
		if set != nil {
			for _, p := range set.Warnings() {
				f.warnings = append(f.warnings, p.String())
			}
		}
		return f, nil
	case d.Object == nil:
		return f, nil
	case kind == "" || version == "":
		f.problems = []string{missingType(kind, version)}
		return f, nil
	}
	f.about += d.Name() + ": "
	if group, _, _ := strings.Cut(version, "/"); group == v1alpha1.GroupVersion.Group {
		f.problems, f.warnings, err = c.own(ctx, d, kind, version)
	} else {
		f.problems, f.warnings, err = c.pod(d)
	}
	return f, err
}

// missingType returns which of apiVersion and kind an object lacks.
func missingType(kind, version string) string {
	var missing []string
	if version == "" {
		missing = append(missing, "apiVersion")
	}
	if kind == "" {
		missing = append(missing, "kind")
	}
	return "found an object without " + strings.Join(missing, " and ") + ", expected a manifest of Kubernetes, or a file of profiles, which is a list or has the key Profiles"
}

// own checks an object of a kind of this project.
func (c *checker) own(ctx context.Context, d manifest.Document, kind, version string) (problems, warnings []string, err error) {
	if want := v1alpha1.GroupVersion.String(); version != want {
		return []string{fmt.Sprintf("apiVersion: found %q, expected %q", version, want)}, nil, nil
	}
	switch kind {
	case "CryptoProfile":
		c.profiles++
		var p v1alpha1.CryptoProfile
		return checkProfile(ctx, d, c.schemas, &p, func() (string, *v1alpha1.ProfileSpec, field.ErrorList) { return p.Name, &p.Spec, nil })
	case "ClusterCryptoProfile":
		c.profiles++
		var p v1alpha1.ClusterCryptoProfile
		return checkProfile(ctx, d, c.schemas, &p, func() (string, *v1alpha1.ProfileSpec, field.ErrorList) {
			if p.Spec.NamespaceSelector == nil {
				return p.Name, &p.Spec.ProfileSpec, nil
			}
			return p.Name, &p.Spec.ProfileSpec, render.ValidateSelector(p.Spec.NamespaceSelector)
		})
	case "InjectionTemplate":
		c.templates++
		_, problems, err = c.schemas.Check(ctx, kind, d.Object)
		return problems, []string{"the operator writes InjectionTemplates, and reverts changes of others: set the values of its chart instead"}, err
	}
	known := c.schemas.Kinds()
	problem := fmt.Sprintf("kind: found %q, expected %s or %s", kind, strings.Join(known[:len(known)-1], ", "), known[len(known)-1])
	if near := profile.Nearest(kind, known); near != "" {
		problem += fmt.Sprintf("; did you mean %q?", near)
	}
	return []string{problem}, nil, nil
}

// pod checks pods and workloads, and counts other objects.
func (c *checker) pod(d manifest.Document) (problems, warnings []string, err error) {
	p, err := d.Template(c.namespace)
	var refusal *injection.Refusal
	switch {
	case errors.As(err, &refusal):
		return refusal.Problems, nil, nil
	case err != nil:
		return nil, nil, err
	case p == nil && d.Text("apiVersion") == "v1" && d.Text("kind") == "Namespace":
		return nil, nil, nil // its label was read
	case p == nil:
		if c.other == nil {
			c.other = map[string]int{}
		}
		c.other[d.Text("kind")]++
		return nil, nil, nil
	}
	if misplaced := d.Misplaced(); misplaced != "" {
		warnings = append(warnings, misplaced)
	}
	decision, err := c.wants(p, c.labelled)
	if err == nil && decision.Inject {
		var said []string
		_, said, err = injection.Inject(p.Pod, p.Namespace, []byte{}, c.template)
		warnings = append(warnings, said...)
	}
	refused := errors.As(err, &refusal)
	switch {
	case decision.Inject:
		c.pods++
	case !refused:
		c.without++
	}
	if refused {
		return refusal.Problems, nil, nil
	}
	return nil, warnings, err
}

// checkProfile checks a profile by its schema and, if that finds no problem, with the
// compiler of the broker.
func checkProfile(ctx context.Context, d manifest.Document, schemas manifest.Schemas, into any, parts func() (string, *v1alpha1.ProfileSpec, field.ErrorList)) (problems, warnings []string, err error) {
	filled, problems, err := schemas.Check(ctx, d.Text("kind"), d.Object)
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

// summary returns a line about what was checked, and what was not.
func (c *checker) summary() string {
	var checked []string
	if c.sets > 0 {
		checked = append(checked, text.Count(c.sets, "file of profiles", "files of profiles"))
	}
	if c.templates > 0 {
		checked = append(checked, text.Count(c.templates, "InjectionTemplate"))
	}
	if len(checked) == 0 || c.profiles+c.pods > 0 {
		checked = append(checked, text.Count(c.profiles, "profile")+" and "+text.Count(c.pods, "pod with a broker", "pods with a broker"))
	}
	said := fmt.Sprintf("%s checked, %s", strings.Join(checked, ", "), text.Count(c.problems, "problem"))
	if c.without > 0 {
		said += fmt.Sprintf("; %s no broker", text.Count(c.without, "pod gets", "pods get"))
	}
	if len(c.other) > 0 {
		var kinds []string
		for kind, n := range c.other {
			kinds = append(kinds, fmt.Sprintf("%s (%d)", kind, n))
		}
		slices.Sort(kinds)
		said += "; not looked at: " + strings.Join(kinds, ", ")
	}
	return said
}
