// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

const (
	// checkTimeout is how long the webhooks may take until they answer as expected, because the
	// installation may just have finished.
	checkTimeout = 30 * time.Second
	checkPause   = time.Second
)

// wrongField is the field for which the webhook refuses a profile that the API server alone
// accepts.
const wrongField = "spec.deprecation.replacedBy"

// checkInstallation asks the API server to create two profiles in a namespace, as a dry run. The
// webhook has to admit the valid profile and to refuse the wrong one, so this shows that the API
// server calls the webhook. It needs the right to create CryptoProfiles there.
func checkInstallation(ctx context.Context, namespace string, stdout io.Writer) error {
	kubernetes, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no access to a cluster: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	kubernetes = rest.CopyConfig(kubernetes)
	kubernetes.WarningHandler = rest.NoWarnings{}
	c, err := client.New(kubernetes, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("prepare to reach the cluster at %s: %w", kubernetes.Host, err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, checkPause, checkTimeout, true, func(ctx context.Context) (bool, error) {
		err := tryProfiles(ctx, c, namespace)
		if last == nil || ctx.Err() == nil { // the timeout itself adds no information
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return errors.Join(last, ctx.Err())
	}
	fmt.Fprintln(stdout, "The API server reaches the operator's webhooks, and trusts their certificate.")
	return nil
}

func tryProfiles(ctx context.Context, c client.Client, namespace string) error {
	right := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "webhook-check-"}}
	right.Spec.ProfileName = "webhook-check"
	right.Spec.API.HashData = &v1alpha1.HashData{HashAlg: "sha3-512"}
	wrong := right.DeepCopy()
	wrong.Spec.Deprecation = &v1alpha1.Deprecation{ReplacedBy: right.Spec.ProfileName}
	if err := c.Create(ctx, right, client.DryRunAll); err != nil {
		return fmt.Errorf("create a right profile in the namespace %q as a dry run: %w", namespace, err)
	}
	switch err := c.Create(ctx, wrong, client.DryRunAll); {
	case err == nil:
		return fmt.Errorf("create a wrong profile in the namespace %q as a dry run: found no refusal, expected the operator's webhook to refuse %s: see whether the ValidatingWebhookConfiguration of the release is there", namespace, wrongField)
	case !strings.Contains(err.Error(), wrongField):
		return fmt.Errorf("create a wrong profile in the namespace %q as a dry run: found %w, expected the operator's webhook to refuse %s", namespace, err, wrongField)
	}
	return nil
}
