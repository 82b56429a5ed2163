// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/effective"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

func newAllow(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "allow KIND/NAME",
		Short: "Allow a profile that is withheld to become weaker, exactly as shown",
		Long: `Allows that a profile which is withheld becomes weaker. It shows what becomes weaker, as diff does, and asks. Then it
writes the annotation ` + v1alpha1.AllowWeakerAnnotation + ` on the object, with the digest of exactly the changes that it has
shown. If the profile, or what is served, changes meanwhile, the digest allows nothing.

That needs the verb "` + downgrade.Verb + `" on the object, and the right to patch it. A ClusterCryptoProfile may be withheld in several namespaces: the
command allows it in the namespace that -n names, or with -A in all namespaces that it has shown.

Then it waits until the namespaces should serve the profile.`,
		Example: `  ` + name + ` allow cprof/payments -n shop
  ` + name + ` allow ccprof/baseline -A --yes`,
		Args: oneProfile,
	}
	cluster.flags(cmd, true)
	cmd.ValidArgsFunction = cluster.complete(profileNames)
	yes := cmd.Flags().BoolP("yes", "y", false, "do not ask for confirmation")
	timeout := cmd.Flags().Duration("timeout", 30*time.Second, "`time` to wait until the operator serves the profile")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return program.Usagef("found no argument, expected one profile such as cprof/NAME")
		}
		if *timeout <= 0 {
			return program.Usagef("--timeout is %s, expected a time such as 30s", *timeout)
		}
		object, err := parseProfile(args[0])
		if err != nil {
			return err
		}
		if object.kind == downgrade.KindNamespaced && cluster.allNamespaces {
			return program.Usagef("--all-namespaces is for a ClusterCryptoProfile")
		}
		client, namespace, err := cluster.connect()
		if err != nil {
			return err
		}
		changes, err := withheldChanges(cmd.Context(), client, namespace, object)
		if err != nil {
			return err
		}
		writeChanges(cmd.OutOrStdout(), changes)
		if len(changes) == 0 {
			return nil
		}
		if n := len(changes); n > downgrade.MaxDigests {
			changes = changes[:downgrade.MaxDigests]
			fmt.Fprintf(cmd.ErrOrStderr(), noteMark+"an object can allow %d different changes at a time: these are the first of %d; run the command again for the others\n", downgrade.MaxDigests, n)
		}
		if err := mayWeaken(cmd.Context(), client, changes[0].Source); err != nil {
			return err
		}
		if !*yes {
			question := "Allow exactly this?"
			if len(changes) > 1 {
				question = fmt.Sprintf("Allow exactly these %d changes?", len(changes))
			}
			if err := confirm(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), question, "nothing was allowed"); err != nil {
				return err
			}
		}
		if err := annotate(cmd.Context(), client, changes); err != nil {
			return fmt.Errorf("nothing was allowed: %w", err)
		}
		return awaitServed(cmd.Context(), client, changes, *timeout, cmd.OutOrStdout())
	}
	return cmd
}

// mayWeaken returns an error if the user lacks the right that the guard requires. The webhook
// checks the same right, but it may not be installed.
func mayWeaken(ctx context.Context, client kubernetes.Interface, source downgrade.Source) error {
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: source.Resource(),
			Verb: downgrade.Verb, Namespace: source.Namespace, Name: source.Name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("find out whether you may allow this: %w", err)
	}
	if review.Status.Allowed && !review.Status.Denied {
		return nil
	}
	where := ""
	if source.Namespace != "" {
		where = " in namespace " + source.Namespace
	}
	return fmt.Errorf("nothing was allowed: the right to %s %s %q%s is missing: a ClusterRole with that verb has to be bound to you, see docs/downgrade-guard.md", downgrade.Verb, source.Resource(), source.Name, where)
}

// annotate writes the annotation that allows these changes, all of one object.
func annotate(ctx context.Context, client kubernetes.Interface, changes []effective.Change) error {
	source := changes[0].Source
	all := make([]downgrade.Change, len(changes))
	for i := range changes {
		all[i] = changes[i].Change
	}
	key, value, _ := strings.Cut(downgrade.Annotation(all...), "=")
	return effective.Annotate(ctx, client, source, key, value)
}

// servedPause is the time between two looks at what a namespace serves.
const servedPause = 500 * time.Millisecond

// awaitServed waits until the namespaces should serve the allowed changes. It does not wait for a
// namespace without a baseline, which serves them only once all of its profiles are allowed.
func awaitServed(ctx context.Context, client kubernetes.Interface, changes []effective.Change, timeout time.Duration, out io.Writer) error {
	pending := map[string][]effective.Change{}
	for _, c := range changes {
		for _, namespace := range c.Namespaces {
			pending[namespace] = append(pending[namespace], c)
		}
	}
	fmt.Fprintln(out, "Allowed.")
	var last error
	err := wait.PollUntilContextTimeout(ctx, servedPause, timeout, true, func(ctx context.Context) (bool, error) {
		for namespace, wanted := range pending {
			set, err := effective.Read(ctx, client, namespace)
			if ctx.Err() != nil {
				return false, ctx.Err() // the time is up, which says nothing about the API server
			}
			switch last = err; {
			case err != nil: // the API server may answer later
				continue
			case set.Served.IsUnknown() && len(set.Judgement.Withheld) > 0:
				fmt.Fprintf(out, "Namespace %s gets its set once %s of it %s allowed, too: %s diff -n %s\n", namespace,
					text.Count(len(set.Judgement.Withheld), "more profile"), choose(len(set.Judgement.Withheld), "is", "are"), name, namespace)
			case slices.ContainsFunc(wanted, func(c effective.Change) bool { return !set.IsServed(c) && !set.IsRollingOut(c) }):
				continue
			case slices.ContainsFunc(wanted, func(c effective.Change) bool { return !set.IsServed(c) }):
				fmt.Fprintf(out, "The change is being rolled out in namespace %s: %s profiles -n %s says how far.\n", namespace, name, namespace)
			default:
				fmt.Fprintf(out, "The brokers of namespace %s should serve it: %s profiles -n %s says how many do.\n", namespace, name, namespace)
			}
			delete(pending, namespace)
		}
		return len(pending) == 0, nil
	})
	switch {
	case err == nil:
		return nil
	case last != nil:
		return fmt.Errorf("the change is allowed; whether it is served is not known: %w", last)
	case ctx.Err() != nil:
		return errors.New("the change is allowed; the command was interrupted before it was served")
	default:
		var left []string
		for namespace := range pending {
			left = append(left, namespace)
		}
		slices.Sort(left)
		return fmt.Errorf("the change is allowed, and after %s not served yet in namespace %s: %s diff shows whether the operator regards it as another change, and %s check whether the operator runs",
			timeout, strings.Join(left, ", "), name, name)
	}
}

// choose returns the singular or the plural of a word for a number.
func choose(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
