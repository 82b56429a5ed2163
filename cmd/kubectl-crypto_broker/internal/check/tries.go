// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/coverage"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
)

const elsewhere = "name another namespace by -n"

// denied is the beginning of the API server's message when a webhook of the operator refuses an
// object.
const denied = `" denied the request: `

// unanswered is the result if the API server could not call the operator.
func (c *Checker) unanswered(err error) (State, string) {
	c.unreached = apierror.OneLine(err.Error())
	if d := c.operator.Deployment; d != nil {
		if why := installation.Hindrance(d); why != "" {
			return Failed, fmt.Sprintf("the API server cannot call the operator: %s. %s", c.unreached, why)
		}
	}
	return Failed, fmt.Sprintf("the API server cannot call the operator, because the network, a NetworkPolicy or a port is in the way, see the README of the chart: %s", c.unreached)
}

// injection checks by a dry run that a pod that asks for a broker gets one.
func (c *Checker) injection(ctx context.Context) (State, string) {
	const what = "whether a pod that asks for a broker gets one"
	pod, err := brokers.NewPod(ctx, c.Client, c.Namespace)
	switch {
	case errors.Is(err, brokers.ErrNotInjected):
		if why := c.leftOut(ctx); why != "" {
			return Skipped, fmt.Sprintf("cannot tell %s: %s; %s", what, why, elsewhere)
		}
		return Failed, fmt.Sprintf("a pod that asks for a broker gets none (dry run in namespace %s): neither the webhook nor a policy injects there; helm upgrade restores both", c.Namespace)
	case apierror.LacksRight(err):
		return cannotTell(what, err)
	case apierrors.IsNotFound(err):
		return Skipped, fmt.Sprintf("cannot tell %s: there is no namespace %s; %s", what, c.Namespace, elsewhere)
	case err != nil && installation.Uncalled(err.Error()):
		return c.unanswered(err)
	case err != nil && strings.Contains(err.Error(), "."+v1alpha1.GroupVersion.Group+denied):
		c.answered = true
		return Failed, fmt.Sprintf("the operator refuses a pod that asks for a broker: %s", apierror.OneLine(err.Error()))
	case err != nil:
		return Skipped, fmt.Sprintf("cannot tell %s: %s; %s", what, apierror.OneLine(apierror.Plain(err)), elsewhere)
	}
	c.made = pod
	how := "webhook"
	if c.byPolicy(ctx) {
		how = "policy"
	} else {
		c.answered = true
	}
	return OK, fmt.Sprintf("a pod that asks for a broker gets one by the %s (dry run in namespace %s): image %s, stamp %s",
		how, c.Namespace, injected.Broker(pod).Image, pod.Annotations[contract.InjectedAnnotation])
}

// byPolicy reports whether policies of the API server are known to inject brokers.
func (c *Checker) byPolicy(ctx context.Context) bool {
	policies, err := coverage.InjectingPolicies(ctx, c.Client)
	return err == nil && len(policies) > 0
}

// leftOut returns a sentence if the operator leaves out the namespace of the dry runs. It returns
// an empty text if the operator does not leave it out, or if that is not known.
func (c *Checker) leftOut(ctx context.Context) string {
	set := labels.Set{}
	if namespace, err := c.Client.CoreV1().Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{}); err == nil {
		set = namespace.Labels
	} else {
		set[corev1.LabelMetadataName] = c.Namespace
	}
	reach := coverage.NewReach(ctx, c.Client, map[string]labels.Set{c.Namespace: set})
	if left, err := reach.LeavesOut(c.Namespace); err == nil && left {
		return fmt.Sprintf("the operator leaves out namespace %s", c.Namespace)
	}
	return ""
}

// validation checks that the operator's webhook validates profiles, by a dry run of a profile
// that it has to refuse.
func (c *Checker) validation(ctx context.Context) (State, string) {
	const what = "whether profiles are checked"
	invalid := v1alpha1.CryptoProfile{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CryptoProfile"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "crypto-broker-dry-run-", Namespace: c.Namespace},
	}
	// The schema accepts this pattern, but the broker's compiler does not.
	invalid.Spec.API.SignCertificate = &v1alpha1.SignCertificate{
		SignAlg: "ecdsa", HashAlg: "sha-512",
		Validity: v1alpha1.Validity{ValidNotBeforeOffset: "-1h", ValidNotAfterOffset: "8760h"},
		KeyConstraints: v1alpha1.CertificateKeyConstraints{
			Subject: v1alpha1.KeyAlgorithms{ECDSA: &v1alpha1.ECDSAKeySize{MinKeySize: 256, MaxKeySize: 521}},
			Issuer:  v1alpha1.KeyAlgorithms{ECDSA: &v1alpha1.ECDSAKeySize{MinKeySize: 256, MaxKeySize: 521}},
		},
		SubjectAltNames: &v1alpha1.SubjectAltNames{Rule: "patterns", DNS: []string{"a..b"}},
	}
	body, err := json.Marshal(invalid)
	if err != nil {
		return cannotTell(what, err)
	}
	err = c.Client.CoreV1().RESTClient().Post().AbsPath("/apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "namespaces", c.Namespace, "cryptoprofiles").
		Param("dryRun", metav1.DryRunAll).Body(body).Do(ctx).Error()
	switch {
	case err == nil:
		return Failed, fmt.Sprintf("the API server accepts an invalid profile (dry run in namespace %s), so it does not call the operator for profiles: helm upgrade restores the webhook configuration", c.Namespace)
	case strings.Contains(err.Error(), ".validate."+v1alpha1.GroupVersion.Group+denied):
		c.answered = true
		return OK, fmt.Sprintf("the API server calls the operator, which refuses an invalid profile (dry run in namespace %s)", c.Namespace)
	case installation.Uncalled(err.Error()):
		return c.unanswered(err)
	case apierror.LacksRight(err):
		return cannotTell(what, err)
	case apierrors.IsNotFound(err):
		return Skipped, fmt.Sprintf("cannot tell %s: there is no namespace %s, or the resource definition is missing; %s", what, c.Namespace, elsewhere)
	default:
		return cannotTell(what, err)
	}
}
