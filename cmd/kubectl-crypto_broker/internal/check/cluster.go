// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
)

// template checks that the InjectionTemplate exists, and that new brokers are made from it.
func (c *Checker) template(ctx context.Context) (State, string) {
	name := c.operator.Argument("injection-template", c.operator.FullName())
	image, stamp, err := installation.ReadTemplate(ctx, c.Client, name)
	switch {
	case apierrors.IsNotFound(err):
		state := Warning
		if c.byPolicy(ctx) {
			state = Failed // the policies refuse pods without it
		}
		return state, fmt.Sprintf("the InjectionTemplate %s is missing: the operator writes it while it runs, and its log says why it does not", name)
	case err != nil:
		return cannotTell("whether the InjectionTemplate is there", err)
	}
	found := fmt.Sprintf("the InjectionTemplate %s has the image %s and the stamp %s", name, image, stamp)
	if want := c.operator.Argument("broker-image", image); want != image {
		return Warning, fmt.Sprintf("%s, and the operator should inject %s: it writes the template within a moment, and its log says why it does not", found, want)
	}
	if c.made != nil && !strings.HasPrefix(c.made.Annotations[contract.InjectedAnnotation], stamp) {
		return Warning, fmt.Sprintf("%s, and a new pod gets the stamp %s: a rollout of the operator goes on, or the operator cannot write the template, see its log", found, c.made.Annotations[contract.InjectedAnnotation])
	}
	return OK, found
}

// named is the maximum number of names that a sentence lists.
const named = 5

// some lists names. If there are many, it lists the first ones.
func some(names []string) string {
	slices.Sort(names)
	if n := len(names) - named; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:named], ", "), n)
	}
	return strings.Join(names, ", ")
}

// namespaces checks that labels of namespaces have the effect that users expect.
func (c *Checker) namespaces(ctx context.Context) (State, string) {
	var enabled int
	var odd, excluded []string
	for next := ""; ; {
		// Only namespaces with the label are of interest.
		page, err := c.Client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: contract.InjectionLabel, Limit: installation.Page, Continue: next})
		if err != nil {
			return cannotTell("whether namespaces have a label without effect", err)
		}
		for i := range page.Items {
			name, value := page.Items[i].Name, page.Items[i].Labels[contract.InjectionLabel]
			left := strings.Split(c.operator.Argument("excluded-namespaces", ""), ",")
			switch {
			case value != contract.InjectionEnabled:
				odd = append(odd, fmt.Sprintf("%s (%q)", name, value))
			case contract.IsExcluded(name, append(left, c.operator.Namespace)...):
				excluded = append(excluded, name)
			default:
				enabled++
			}
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	var a answer
	if len(odd) > 0 {
		a.add(Warning, "the label %s has no effect on %s: expected the value %q, or no such label", contract.InjectionLabel, some(odd), contract.InjectionEnabled)
	}
	if len(excluded) > 0 {
		a.add(Warning, "the label %s has no effect on %s, because the operator leaves them out: remove it, or see webhook.excludedNamespaces of the chart", contract.InjectionLabel, some(excluded))
	}
	if len(a.found) == 0 {
		a.add(OK, "%d namespaces ask for brokers by label, and no label is without effect", enabled)
	}
	return a.state, strings.Join(a.found, "; ")
}

// versions checks that the plugin, the operator and the brokers have the same version.
func (c *Checker) versions(ctx context.Context) (State, string) {
	operator := installation.RunningVersion(ctx, c.Client, c.operator)
	counted, err := brokers.Versions(ctx, c.Client, "")
	if err != nil {
		return cannotTell(fmt.Sprintf("which versions the brokers have; the plugin is %s, the operator %s", c.Version, orUnknown(operator)), err)
	}
	pods, behind := 0, 0
	var other []string
	for _, version := range slices.Sorted(maps.Keys(counted)) {
		pods += counted[version]
		if version != operator {
			behind += counted[version]
			other = append(other, fmt.Sprintf("%d of %s", counted[version], orUnknown(version)))
		}
	}
	found := fmt.Sprintf("the plugin is %s, the operator %s, and %d pods have a broker", c.Version, orUnknown(operator), pods)
	switch {
	case operator == "":
		return Skipped, fmt.Sprintf("cannot tell which version the operator has: neither its Deployment nor its InjectionTemplate could be read; %s", found)
	case behind > 0:
		return Warning, fmt.Sprintf("%s, %d of them from another version (%s): kubectl crypto-broker restart --outdated -A replaces them", found, behind, strings.Join(other, ", "))
	case !installation.SameVersion(c.Version, operator):
		return Warning, fmt.Sprintf("%s: use the plugin of the operator's version, because another version may judge differently", found)
	default:
		return OK, found
	}
}

func orUnknown(version string) string {
	if version == "" {
		return "unknown"
	}
	return version
}
