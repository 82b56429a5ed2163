// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

// installedWebhooks are the webhooks of an installation, without the group's name. The value
// is the failurePolicy that the chart gives them.
var installedWebhooks = map[string]admissionregistrationv1.FailurePolicyType{
	"labelled.inject":                      admissionregistrationv1.Fail,
	"annotated.inject":                     admissionregistrationv1.Fail,
	"cryptoprofile.validate":               admissionregistrationv1.Fail,
	"clustercryptoprofile.validate":        admissionregistrationv1.Fail,
	"keyprovider.validate":                 admissionregistrationv1.Fail,
	"clusterkeyprovider.validate":          admissionregistrationv1.Fail,
	"keyaccesspolicy.validate":             admissionregistrationv1.Fail,
	"keyaccesspeer.validate":               admissionregistrationv1.Fail,
	"cryptoprofile.delete.validate":        admissionregistrationv1.Ignore,
	"clustercryptoprofile.delete.validate": admissionregistrationv1.Ignore,
}

// entry is one webhook of either kind.
type entry struct {
	name   string
	call   admissionregistrationv1.WebhookClientConfig
	policy admissionregistrationv1.FailurePolicyType
}

// entries returns the operator's webhooks.
func (c *Checker) entries() (all []entry) {
	add := func(name string, call admissionregistrationv1.WebhookClientConfig, policy *admissionregistrationv1.FailurePolicyType) {
		short, ours := strings.CutSuffix(name, "."+v1alpha1.GroupVersion.Group)
		if !ours {
			return
		}
		e := entry{short, call, admissionregistrationv1.Fail}
		if policy != nil {
			e.policy = *policy
		}
		all = append(all, e)
	}
	for _, configuration := range c.operator.Webhooks.Mutating {
		for i := range configuration.Webhooks {
			add(configuration.Webhooks[i].Name, configuration.Webhooks[i].ClientConfig, configuration.Webhooks[i].FailurePolicy)
		}
	}
	for _, configuration := range c.operator.Webhooks.Validating {
		for i := range configuration.Webhooks {
			add(configuration.Webhooks[i].Name, configuration.Webhooks[i].ClientConfig, configuration.Webhooks[i].FailurePolicy)
		}
	}
	return all
}

// webhooks checks that all webhooks are configured, each with a caBundle.
func (c *Checker) webhooks(context.Context) (State, string) {
	if err := c.operator.WebhooksUnknown; err != nil {
		return cannotTell("whether the webhooks are configured", err)
	}
	all := c.entries()
	var missing, empty, ignoring []string
	for name, policy := range installedWebhooks {
		i := slices.IndexFunc(all, func(e entry) bool { return e.name == name })
		switch {
		case i < 0:
			missing = append(missing, name)
		case len(all[i].call.CABundle) == 0:
			empty = append(empty, name)
		case policy == admissionregistrationv1.Fail && all[i].policy != policy:
			ignoring = append(ignoring, name)
		}
	}
	list := func(names []string) string {
		slices.Sort(names)
		return strings.Join(names, ", ")
	}
	switch {
	case len(all) == 0:
		return Failed, "no webhook of the operator is configured: install the chart, or helm upgrade restores the configurations"
	case len(missing) > 0:
		return Failed, fmt.Sprintf("the webhooks %s are not configured: helm upgrade restores them", list(missing))
	case len(empty) > 0:
		return Failed, fmt.Sprintf("the caBundle of the webhooks %s is empty, so that each call fails: the operator fills it in when it starts, and its log says why it does not", list(empty))
	case len(ignoring) > 0:
		return Warning, fmt.Sprintf("the failurePolicy of the webhooks %s is Ignore, so that pods get no broker, and nobody checks profiles, while the operator does not answer: helm upgrade restores Fail", list(ignoring))
	default:
		return OK, fmt.Sprintf("%d webhooks are configured, each with a caBundle", len(all))
	}
}

// leastRest is the remaining lifetime of an authority below which a successor should exist.
const leastRest = 30 * 24 * time.Hour

// certificate checks that the API server accepts the serving certificate, and for how long its
// authority is valid. The serving certificates are in the memory of the replicas, so only a call
// shows whether they match the caBundle.
func (c *Checker) certificate(context.Context) (State, string) {
	if err := c.operator.WebhooksUnknown; err != nil {
		return cannotTell("which certificates the API server trusts", err)
	}
	all := c.entries()
	if len(all) == 0 {
		return Failed, "no webhook has a caBundle, because none is configured"
	}
	for _, e := range all {
		if !bytes.Equal(e.call.CABundle, all[0].call.CABundle) {
			return Warning, fmt.Sprintf("the webhooks %s and %s have different caBundles: the operator makes them equal within a moment, and its log says why it does not", all[0].name, e.name)
		}
	}
	until := lastDay(all[0].call.CABundle)
	switch rest := time.Until(until); {
	case until.IsZero():
		return Failed, "the caBundle of the webhooks has no certificate of an authority: delete the caBundle, and the operator fills it in again"
	case rest <= 0:
		return Failed, fmt.Sprintf("the authority of the serving certificates has expired at %s: the operator's log says why it made no other one", until.Format(time.RFC3339))
	case strings.Contains(c.unreached, "x509:") || strings.Contains(c.unreached, "tls:"):
		return Failed, fmt.Sprintf("the API server does not accept the serving certificate: %s", c.unreached)
	case rest < leastRest && c.operator.Argument("webhook-certificate-dir", "") == "": // otherwise another program makes the certificate
		return Warning, fmt.Sprintf("the authority of the serving certificates expires at %s, and the operator should have made its successor: see its log", until.Format(time.RFC3339))
	case !c.answered:
		return Skipped, fmt.Sprintf("cannot tell whether the API server accepts the serving certificate, because no webhook has answered; its authority is valid until %s", until.Format(time.RFC3339))
	default:
		return OK, fmt.Sprintf("the API server accepts the serving certificate, whose authority is valid until %s", until.Format(time.RFC3339))
	}
}

// lastDay returns the day on which the last authority of a bundle expires.
func lastDay(bundle []byte) (until time.Time) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && certificate.NotAfter.After(until) {
			until = certificate.NotAfter.UTC()
		}
	}
	return until
}
