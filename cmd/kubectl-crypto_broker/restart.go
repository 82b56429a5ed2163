// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/dryrun"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
	"github.com/crypto-broker/crypto-broker-operator/webhook/injection"
)

// restartedAt is the annotation that kubectl rollout restart sets.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// pollPause is the time between two looks at a rollout.
const pollPause = 500 * time.Millisecond

func newRestart(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restart [KIND/NAME...]",
		Short: "Restart workloads one at a time, as kubectl rollout restart does",
		Long: `Restarts workloads one at a time: the next one begins when all pods of the one before are new and available.
If one does not come up within --timeout, the command says why as far as the cluster shows it, ends with exit code 1
and does not restart the others. An interrupt does the same. A rollout that has begun goes on; kubectl rollout undo
reverts it.

Before it restarts anything, the command creates a pod of each workload's template as a dry run. If new pods are
refused, nothing is restarted, because a restart would only delete old pods. If --missing, --outdated or --refused
found the workload, the pod also has to get a broker. Without the right to create pods, the command prints a note and
restarts without this check.

A stuck rollout, even one that exceeded its progress deadline, is restarted: the restart begins a new one. If a
rollout is paused, or the update strategy is OnDelete, the command says so and restarts nothing.

Workloads are deployments, statefulsets and daemonsets, named here or found by --missing, --outdated and --refused.
The command lists pods that it cannot restart, such as a pod without a workload or of a job.

--refused finds pods whose brokers say that they refuse the set of profiles for its signature. These pods are older
than the present signing key, because its Secret was deleted. New pods trust the new key.`,
		Example: `  ` + name + ` restart deployment/orders -n shop
  ` + name + ` restart --missing --outdated -A
  ` + name + ` restart --refused -A
  ` + name + ` restart --outdated -n shop --dry-run`,
	}
	cluster.flags(cmd, true)
	cmd.ValidArgsFunction = cluster.complete(workloadNames)
	flags := cmd.Flags()
	var found concerned
	flags.BoolVar(&found.missing, "missing", false, "restart workloads with pods that miss their broker")
	flags.BoolVar(&found.outdated, "outdated", false, "restart workloads with pods whose broker is outdated")
	flags.BoolVar(&found.refused, "refused", false, "restart workloads with pods whose broker refuses the set of profiles for its signature")
	yes := flags.BoolP("yes", "y", false, "do not ask for confirmation")
	dryRun := flags.Bool("dry-run", false, "print what would be restarted, and restart nothing")
	timeout := flags.Duration("timeout", 10*time.Minute, "`time` to wait until a workload is up")
	cmd.RunE = func(cmd *cobra.Command, arguments []string) error {
		if found.any() == (len(arguments) > 0) {
			return program.Usagef("expected either workloads as KIND/NAME, or one or more of --missing, --outdated and --refused")
		}
		if *timeout <= 0 {
			return program.Usagef("--timeout is %s, expected a time such as 10m", *timeout)
		}
		if _, err := parseWorkloads(arguments, ""); err != nil {
			return err
		}
		if len(arguments) > 0 && cluster.allNamespaces {
			return program.Usagef("--all-namespaces is for --missing, --outdated and --refused")
		}
		client, namespace, err := cluster.connect()
		if err != nil {
			return err
		}
		r := restarter{client: client, in: cmd.InOrStdin(), out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr(), timeout: *timeout, forBroker: found.any()}
		var all []workload.Workload
		unknown := false
		if len(arguments) > 0 {
			all, err = parseWorkloads(arguments, namespace)
		} else {
			all, unknown, err = r.find(cmd.Context(), namespace, found)
		}
		if err != nil {
			return err
		}
		if len(all) == 0 && unknown {
			return errFound // the notes say what is not known
		}
		if len(all) == 0 {
			fmt.Fprintln(r.out, "Nothing to restart.")
			return nil
		}
		if err := r.check(cmd.Context(), all); err != nil {
			return err
		}
		for _, w := range all {
			fmt.Fprintf(r.out, "%s in namespace %s\n", w, w.Namespace)
		}
		if *dryRun {
			return nil
		}
		if !*yes {
			if err := r.confirm(cmd.Context(), len(all)); err != nil {
				return err
			}
		}
		return r.restart(cmd.Context(), all)
	}
	return cmd
}

func parseWorkloads(arguments []string, namespace string) (all []workload.Workload, err error) {
	for _, argument := range arguments {
		w, err := workload.Parse(argument, namespace)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all, nil
}

// restarter restarts workloads.
type restarter struct {
	client    kubernetes.Interface
	in        io.Reader
	out, errs io.Writer
	timeout   time.Duration
	// forBroker reports whether new pods have to get a broker. If they would not, nothing is
	// restarted.
	forBroker bool
}

// concerned selects the pods whose workloads are restarted.
type concerned struct{ missing, outdated, refused bool }

func (c concerned) any() bool { return c.missing || c.outdated || c.refused }

// by reports whether the workload of a pod is to be restarted.
func (c concerned) by(r brokers.Row) bool {
	return c.missing && r.Broker == brokers.Missing || c.outdated && r.Broker == brokers.Outdated ||
		c.refused && r.Reason == string(directory.SignatureRejected)
}

// find returns the workloads of the selected pods. unknown reports whether there may be more.
// Then find has printed a note.
func (r restarter) find(ctx context.Context, namespace string, pods concerned) (all []workload.Workload, unknown bool, err error) {
	rows, notes, err := brokers.Survey{Client: r.client, Judge: pods.outdated, Ask: pods.refused}.Rows(ctx, namespace, "")
	if err != nil {
		return nil, false, err
	}
	if silent := slices.IndexFunc(rows, func(row brokers.Row) bool { return row.Set == brokers.SetUnknown }); pods.refused && silent >= 0 {
		notes = append(notes, fmt.Sprintf("not every broker could be asked, so workloads may be missing here: pod %s/%s: %s", rows[silent].Namespace, rows[silent].Pod, rows[silent].Note))
	}
	for _, note := range notes {
		fmt.Fprintln(r.errs, noteMark+note)
	}
	rows = slices.DeleteFunc(rows, func(row brokers.Row) bool { return !pods.by(row) })
	if note := brokers.Doubt(rows); note != "" {
		fmt.Fprintln(r.errs, noteMark+note)
	}
	for _, row := range rows {
		w, can := row.Owner.Workload()
		if !can {
			of := row.Workload
			if of == "" {
				of = "no workload"
			}
			is := row.Broker
			if row.Set == brokers.SetRefused && pods.refused {
				is = "refusing its set"
			}
			fmt.Fprintf(r.errs, noteMark+"pod %s/%s is %s and belongs to %s: it cannot be restarted here\n", row.Namespace, row.Pod, is, of)
			continue
		}
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all, len(notes) > 0, nil
}

// check returns an error if one of the workloads cannot be restarted. It reads the workload,
// tries the restart as a dry run, which shows missing rights, and creates a new pod as a dry run.
func (r restarter) check(ctx context.Context, all []workload.Workload) error {
	patch, err := restartPatch()
	if err != nil {
		return err
	}
	var problems []error
	for _, w := range all {
		p, err := w.Read(ctx, r.client)
		switch {
		case err != nil:
			problems = append(problems, err)
			continue
		case p.Barred != "":
			problems = append(problems, fmt.Errorf("%s in namespace %s cannot be restarted: %s", w, w.Namespace, p.Barred))
			continue
		case p.Exceeded:
			fmt.Fprintf(r.errs, noteMark+"%s in namespace %s exceeded its progress deadline: the restart begins a new rollout\n", w, w.Namespace)
		}
		if err := w.Patch(ctx, r.client, patch, metav1.DryRunAll); err != nil {
			problems = append(problems, fmt.Errorf("%s in namespace %s cannot be restarted: %w", w, w.Namespace, err))
			continue
		}
		if err := r.try(ctx, w); err != nil {
			problems = append(problems, fmt.Errorf("%s in namespace %s cannot be restarted: %w", w, w.Namespace, err))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("nothing was restarted: %w", errors.Join(problems...))
	}
	return nil
}

// try creates a new pod of the workload as a dry run, because a StatefulSet and a DaemonSet
// delete a running pod before they learn that its successor is refused. An exhausted quota is
// only a note, because the deleted pod makes room.
func (r restarter) try(ctx context.Context, w workload.Workload) error {
	found, err := w.Made(ctx, r.client)
	if err != nil {
		return err
	}
	t, template := dryrun.Trial{Client: r.client}, found.Pod()
	admitted, err := t.Create(ctx, template, template.Pod.Annotations)
	var refusal *injection.Refusal
	switch {
	case apierror.LacksRight(err):
		fmt.Fprintf(r.errs, noteMark+"the dry run that would show whether new pods of %s in namespace %s are admitted failed: %s\n", w, w.Namespace, apierror.OneLine(apierror.Plain(err)))
		return nil
	case errors.As(err, &refusal) && strings.Contains(refusal.Error(), dryrun.QuotaExceeded):
		fmt.Fprintf(r.errs, noteMark+"as long as no pod of %s in namespace %s has ended, a new one %v\n", w, w.Namespace, refusal)
		return nil
	case errors.As(err, &refusal):
		return fmt.Errorf("a new pod of it %w", refusal)
	case err != nil:
		return fmt.Errorf("the dry run with a new pod of it failed: %w", err)
	case r.forBroker && injected.Broker(admitted) == nil:
		return fmt.Errorf("a new pod of it gets no broker: %s", t.WhyNot(ctx, template))
	}
	return nil
}

// confirm asks the user whether to continue.
func (r restarter) confirm(ctx context.Context, n int) error {
	what := "it"
	if n > 1 {
		what = fmt.Sprintf("these %d, one at a time", n)
	}
	return confirm(ctx, r.in, r.out, fmt.Sprintf("Restart %s?", what), "nothing was restarted")
}

// restart restarts the workloads one after the other, and stops at the first whose pods do not
// become ready.
func (r restarter) restart(ctx context.Context, all []workload.Workload) error {
	for i, w := range all {
		fmt.Fprintf(r.out, "%d/%d %s in namespace %s: restarting\n", i+1, len(all), w, w.Namespace)
		begin := time.Now()
		if err := r.one(ctx, w); err != nil {
			left := ""
			switch rest := len(all) - i - 1; rest {
			case 0:
			case 1:
				left = "; the other one was not restarted"
			default:
				left = fmt.Sprintf("; the other %d were not restarted", rest)
			}
			return fmt.Errorf("%s in namespace %s: %w%s", w, w.Namespace, err, left)
		}
		fmt.Fprintf(r.out, "%d/%d %s in namespace %s: done after %s\n", i+1, len(all), w, w.Namespace, time.Since(begin).Round(time.Second))
	}
	return nil
}

// restartPatch returns the patch that kubectl rollout restart sends.
func restartPatch() ([]byte, error) {
	return json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{restartedAt: time.Now().Format(time.RFC3339)}},
	}}})
}

// one restarts a workload and waits for its pods. It continues to wait while the API server does
// not answer.
func (r restarter) one(ctx context.Context, w workload.Workload) error {
	patch, err := restartPatch()
	if err != nil {
		return err
	}
	if err := w.Patch(ctx, r.client, patch); err != nil {
		return err
	}
	said := ""
	err = wait.PollUntilContextTimeout(ctx, pollPause, r.timeout, true, func(ctx context.Context) (bool, error) {
		p, err := w.Read(ctx, r.client)
		away := false
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
			return false, err
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil:
			p.Text, away = apierror.OneLine(apierror.Plain(err)), true
		}
		if p.Text != said {
			said = p.Text
			fmt.Fprintf(r.out, "    %s\n", said)
		}
		switch {
		case away:
			return false, nil
		case p.Barred != "":
			return false, errors.New(p.Barred)
		case p.Exceeded:
			return false, fmt.Errorf("it exceeded its progress deadline (%s)%s", said, w.Reason(ctx, r.client))
		}
		return p.Done, nil
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted while it was being restarted (%s), which continues", said)
	case wait.Interrupted(err):
		return fmt.Errorf("it did not come up within %s (%s)%s", r.timeout, said, w.Reason(ctx, r.client))
	}
	return err
}
