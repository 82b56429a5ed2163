// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/check"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/effective"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
)

// setsPage is the number of ConfigMaps that are read at a time, each of up to 1 MiB.
const setsPage = 20

// Collector collects an archive.
type Collector struct {
	Client kubernetes.Interface
	// Namespace limits the archive to the operator and one namespace. It is empty for all
	// namespaces.
	Namespace string
	// Checker makes the findings of the archive.
	Checker *check.Checker
	// Now is the time of the archive.
	Now time.Time
}

// Write writes the archive. It returns a line for each thing that could not be read.
func (c *Collector) Write(ctx context.Context, w io.Writer) (leftOut []string, err error) {
	operator, err := installation.Find(ctx, c.Client, c.Checker.OperatorNamespace)
	if err != nil {
		return nil, err
	}
	a := newArchive(w, c.Now)
	for _, part := range []func(context.Context, installation.Operator, *archive) error{
		c.findings, c.deployment, c.lease, c.logs, c.webhooks, c.clusterProfiles, c.namespaces, c.profiles, c.sets, c.pods, c.events,
	} {
		if err := part(ctx, operator, a); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	where := "all namespaces"
	if c.Namespace != "" {
		where = "namespace " + c.Namespace
	}
	about := fmt.Sprintf("Support archive of %s, made at %s by the plugin %s.", where, c.Now.UTC().Format(time.RFC3339), c.Checker.Version)
	if err := a.close(about); err != nil {
		return nil, err
	}
	return a.leftOut, nil
}

func (c *Collector) findings(ctx context.Context, _ installation.Operator, a *archive) error {
	found, err := c.Checker.Run(ctx)
	if err != nil {
		return a.without("findings of check", err)
	}
	return a.object("check.yaml", found)
}

func (c *Collector) deployment(_ context.Context, o installation.Operator, a *archive) error {
	switch {
	case o.DeploymentUnknown != nil:
		return a.without("the operator's Deployment", o.DeploymentUnknown)
	case o.Deployment == nil:
		return nil // check.yaml says so
	default:
		return a.object("operator/deployment.yaml", deploymentOf(o.Deployment, installation.Replicas(o.Deployment)))
	}
}

func (c *Collector) lease(ctx context.Context, o installation.Operator, a *archive) error {
	lease, err := c.Client.CoordinationV1().Leases(o.Namespace).Get(ctx, v1alpha1.LeaderElectionLease, metav1.GetOptions{})
	if err != nil {
		return a.without("the Lease of the leader", err)
	}
	return a.object("operator/lease.yaml", map[string]any{"metadata": aboutOf(lease), "holder": lease.Spec.HolderIdentity, "renewed": lease.Spec.RenewTime})
}

func (c *Collector) webhooks(_ context.Context, o installation.Operator, a *archive) error {
	if o.WebhooksUnknown != nil {
		return a.without("webhook configurations", o.WebhooksUnknown)
	}
	all := []webhook{}
	for _, configuration := range o.Webhooks.Mutating {
		for i := range configuration.Webhooks {
			w := &configuration.Webhooks[i]
			all = append(all, webhookOf(configuration.Name, w.Name, w.ClientConfig, w.FailurePolicy, w.NamespaceSelector))
		}
	}
	for _, configuration := range o.Webhooks.Validating {
		for i := range configuration.Webhooks {
			w := &configuration.Webhooks[i]
			all = append(all, webhookOf(configuration.Name, w.Name, w.ClientConfig, w.FailurePolicy, w.NamespaceSelector))
		}
	}
	return a.object("cluster/webhooks.yaml", all)
}

func (c *Collector) clusterProfiles(ctx context.Context, _ installation.Operator, a *archive) error {
	found, err := effective.ClusterProfiles(ctx, c.Client)
	if err != nil {
		return a.without("ClusterCryptoProfiles", err)
	}
	all := []clusterProfile{}
	for i := range found {
		p := clusterProfile{aboutOf(&found[i]), found[i].Spec, found[i].Status}
		p.Spec.ProfileSpec = withoutSettings(p.Spec.ProfileSpec)
		all = append(all, p)
	}
	return a.object("cluster/clustercryptoprofiles.yaml", all)
}

// namespaces adds the labels of namespaces, which select the namespaces for brokers and profiles.
func (c *Collector) namespaces(ctx context.Context, _ installation.Operator, a *archive) error {
	all := []about{}
	if c.Namespace != "" {
		found, err := c.Client.CoreV1().Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{})
		if err != nil {
			return a.without("the namespace", err)
		}
		return a.object("cluster/namespaces.yaml", append(all, aboutOf(found)))
	}
	for next := ""; ; {
		page, err := c.Client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: installation.Page, Continue: next})
		if err != nil {
			return a.without("namespaces", err)
		}
		for i := range page.Items {
			all = append(all, aboutOf(&page.Items[i]))
		}
		if next = page.Continue; next == "" {
			return a.object("cluster/namespaces.yaml", all)
		}
	}
}

func (c *Collector) profiles(ctx context.Context, _ installation.Operator, a *archive) error {
	found, err := effective.NamespacedProfiles(ctx, c.Client, c.Namespace)
	if err != nil {
		return a.without("CryptoProfiles", err)
	}
	all := []namespacedProfile{}
	for i := range found {
		all = append(all, namespacedProfile{aboutOf(&found[i]), withoutSettings(found[i].Spec), found[i].Status})
	}
	return a.object("namespaces/cryptoprofiles.yaml", all)
}

func (c *Collector) sets(ctx context.Context, o installation.Operator, a *archive) error {
	all := []set{}
	for next := ""; ; {
		page, err := c.Client.CoreV1().ConfigMaps(c.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + v1alpha1.ProfilesConfigMap, Limit: setsPage, Continue: next})
		if err != nil {
			return a.without("ConfigMaps of profiles", err)
		}
		for i := range page.Items {
			if page.Items[i].Namespace != o.Namespace { // in this namespace it is the operator's record
				all = append(all, setOf(&page.Items[i]))
			}
		}
		if next = page.Continue; next == "" {
			return a.object("namespaces/sets.yaml", all)
		}
	}
}

func (c *Collector) pods(ctx context.Context, _ installation.Operator, a *archive) error {
	all := []pod{}
	for next := ""; ; {
		page, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{Limit: installation.Page, Continue: next})
		if err != nil {
			return a.without("pods", err)
		}
		for i := range page.Items {
			if p := &page.Items[i]; injected.Broker(p) != nil {
				all = append(all, podOf(p))
			}
		}
		if next = page.Continue; next == "" {
			return a.object("namespaces/pods.yaml", all)
		}
	}
}

// events adds the events that the operator has written.
func (c *Collector) events(ctx context.Context, _ installation.Operator, a *archive) error {
	all := []event{}
	for next := ""; ; {
		page, err := c.Client.EventsV1().Events(c.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reportingController=" + v1alpha1.FieldManager, Limit: installation.Page, Continue: next})
		if err != nil {
			return a.without("events", err)
		}
		for i := range page.Items {
			e := &page.Items[i]
			reduced := event{Time: e.EventTime.UTC(), Count: e.DeprecatedCount, Type: e.Type, Reason: e.Reason, Note: e.Note,
				About: fmt.Sprintf("%s %s/%s", e.Regarding.Kind, e.Regarding.Namespace, e.Regarding.Name)}
			if e.Series != nil {
				reduced.Time, reduced.Count = e.Series.LastObservedTime.UTC(), e.Series.Count
			}
			all = append(all, reduced)
		}
		if next = page.Continue; next == "" {
			return a.object("namespaces/events.yaml", all)
		}
	}
}
