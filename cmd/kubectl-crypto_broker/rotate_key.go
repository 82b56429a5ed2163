// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

func newRotateKey(cluster *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate-key",
		Short: "Have the operator replace its signing key, and wait until every set is signed with the new one",
		Long: `Has the operator make a new key to sign sets of profiles with, and waits until it has signed the sets of all namespaces
with it. New pods trust only the new key. Running brokers keep the keys that they trust: the retired key goes on
signing for them until their pods are replaced, so no pod has to be restarted. The command ends with the number of such
pods.

This is for a rotation out of turn. If a key has leaked, delete its entry in the Secret instead: docs/tamper-evidence.md
says how.

The command reads the metadata of the Secret, and never what it contains.`,
		Example: `  ` + name + ` rotate-key
  ` + name + ` rotate-key --yes --timeout 10m`,
		Args:              subcommands.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cluster.flags(cmd, false)
	operatorNamespace := cluster.operatorFlag(cmd)
	yes := cmd.Flags().BoolP("yes", "y", false, "do not ask for confirmation")
	timeout := cmd.Flags().Duration("timeout", 5*time.Minute, "`time` to wait until all sets are signed with the new key")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *timeout <= 0 {
			return program.Usagef("--timeout is %s, expected a time such as 5m", *timeout)
		}
		client, _, err := cluster.connect()
		if err != nil {
			return err
		}
		operator, err := installation.Find(cmd.Context(), client, *operatorNamespace)
		if err != nil {
			return err
		}
		r := rotation{client: client, out: cmd.OutOrStdout(), namespace: operator.Namespace, secret: operator.SigningSecret()}
		before, err := r.age(cmd.Context())
		if err != nil {
			return fmt.Errorf("nothing was rotated: %w", err)
		}
		fmt.Fprintf(r.out, "The current key of the Secret %s in namespace %s has been current since %s; %s.\n",
			r.secret, r.namespace, before.Since.UTC().Format(text.TimeFormat), text.Count(len(before.Retired), "retired key still signs", "retired keys still sign"))
		if !*yes {
			if err := confirm(cmd.Context(), cmd.InOrStdin(), r.out, "Replace it?", "nothing was rotated"); err != nil {
				return err
			}
		}
		if err := installation.AnnotateSecret(cmd.Context(), client, r.namespace, r.secret, signing.RotateAnnotation, "now"); err != nil {
			return fmt.Errorf("nothing was rotated: %w", err)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), *timeout)
		defer cancel()
		err = r.finish(ctx, before)
		switch {
		case cmd.Context().Err() != nil:
			return errors.New("interrupted; the operator completes the rotation")
		case err != nil && ctx.Err() != nil:
			return fmt.Errorf("the rotation was asked for, and has not ended within %s: %w", *timeout, err)
		}
		return err
	}
	return cmd
}

// rotation is the replacement of a signing key.
type rotation struct {
	client            kubernetes.Interface
	out               io.Writer
	namespace, secret string
}

// rotationPause is the time between two looks.
const rotationPause = time.Second

func (r rotation) age(ctx context.Context) (signing.Age, error) {
	metadata, err := installation.SecretMetadata(ctx, r.client, r.namespace, r.secret)
	if apierrors.IsNotFound(err) {
		return signing.Age{}, fmt.Errorf("there is no Secret %s in namespace %s: name the operator's namespace by --operator-namespace", r.secret, r.namespace)
	}
	if err != nil {
		return signing.Age{}, err
	}
	return signing.AgeOf(metadata), nil
}

// finish waits until there is a new key, and until all sets are signed with it. If it fails, the
// error says what it has waited for.
func (r rotation) finish(ctx context.Context, before signing.Age) error {
	var now signing.Age
	err := r.await(ctx, func(ctx context.Context) (done bool, err error) {
		now, err = r.age(ctx)
		return err == nil && !now.Asked && !slices.Equal(now.Retired, before.Retired), err
	})
	if err != nil {
		return fmt.Errorf("the operator has not made a new key: kubectl get events -n %s --field-selector involvedObject.name=%s says why, and %s check whether it runs", r.namespace, r.secret, name)
	}
	fmt.Fprintln(r.out, "The operator has a new key.")
	all, err := r.sets(ctx)
	if err != nil {
		return fmt.Errorf("which sets are signed is not known: %w", err)
	}
	pending, said := all, -1
	err = r.await(ctx, func(ctx context.Context) (bool, error) {
		var left []string
		for _, namespace := range pending {
			set, err := r.client.CoreV1().ConfigMaps(namespace).Get(ctx, v1alpha1.ProfilesConfigMap, metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return false, err
			}
			if err == nil && !signedWithCurrent(set, now.Retired) {
				left = append(left, namespace)
			}
		}
		pending = left
		if done := len(all) - len(pending); done != said {
			said = done
			fmt.Fprintf(r.out, "  %d of %s signed with it\n", done, text.Count(len(all), "set is", "sets are"))
		}
		return len(pending) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%s not signed with the new key yet, the first in namespace %s", text.Count(len(pending), "set is", "sets are"), pending[0])
	}
	return r.report(ctx, now)
}

// setsPage is the number of ConfigMaps that are read at a time, each of up to 1 MiB.
const setsPage = 20

// await checks at intervals until something is done. It continues while the API server does not
// answer. It ends with the context, or if the user lacks a right.
func (r rotation) await(ctx context.Context, look func(context.Context) (bool, error)) error {
	return wait.PollUntilContextCancel(ctx, rotationPause, true, func(ctx context.Context) (bool, error) {
		done, err := look(ctx)
		if apierror.LacksRight(err) {
			return false, err
		}
		return done && err == nil, nil
	})
}

// sets returns the namespaces that have a signed set.
func (r rotation) sets(ctx context.Context) (namespaces []string, err error) {
	for next := ""; ; {
		page, err := r.client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + v1alpha1.ProfilesConfigMap, Limit: setsPage, Continue: next})
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if page.Items[i].Data[signed.FileName] != "" {
				namespaces = append(namespaces, page.Items[i].Namespace)
			}
		}
		if next = page.Continue; next == "" {
			return namespaces, nil
		}
	}
}

// signedWithCurrent reports whether a set has a signature by a key that is not retired, or needs
// no signature.
func signedWithCurrent(set *corev1.ConfigMap, retired []string) bool {
	signature := set.Data[signed.FileName]
	if signature == "" { // the last profile of the namespace has gone
		return true
	}
	_, keys, err := signed.Read([]byte(signature))
	return err == nil && slices.ContainsFunc(keys, func(id string) bool { return !slices.Contains(retired, id) })
}

// report prints how many running pods depend on retired keys.
func (r rotation) report(ctx context.Context, now signing.Age) error {
	depend := 0
	for next := ""; ; {
		page, err := r.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: installation.Page, Continue: next})
		if err != nil {
			return fmt.Errorf("the key is rotated; how many pods trust only retired keys is not known: %w", err)
		}
		for i := range page.Items {
			trusts := signing.TrustedBy(&page.Items[i])
			if len(trusts) > 0 && !slices.ContainsFunc(trusts, func(id string) bool { return !slices.Contains(now.Retired, id) }) {
				depend++
			}
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	fmt.Fprintf(r.out, "Done. %s only retired keys, which sign for them until they are replaced.\n", text.Count(depend, "running pod trusts", "running pods trust"))
	return nil
}
