// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// atATime is how many annotations the operator writes at a time.
const atATime = 8

// bare has the cost of the annotations of pods while nothing else happens.
type bare struct {
	policies string // with which admission policies
	pods     int
	took     time.Duration
	planeTimes
}

// annotateBare ends the operator. Then it writes the annotations of the pods of the first namespace as the operator does, first
// with the admission policies of the chart and then without them.
func (b *bench) annotateBare(ctx context.Context) error {
	runner.Progress("annotates the pods of one namespace without the operator")
	if err := b.operator.stop(); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", b.installation.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	clients, err := metadata.NewForConfig(metadata.ConfigFor(config))
	if err != nil {
		return err
	}
	namespace := namespaceName(0)
	pods := clients.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace)
	patch := func(ctx context.Context, pod, metadata string, dryRun ...string) error {
		_, err := pods.Patch(ctx, pod, types.StrategicMergePatchType, fmt.Appendf(nil, `{"metadata":{%s}}`, metadata),
			metav1.PatchOptions{FieldManager: v1alpha1.FieldManager, FieldValidation: metav1.FieldValidationIgnore, DryRun: dryRun}, "status")
		return err
	}
	b.nodes.mu.Lock()
	names := slices.Sorted(maps.Keys(b.nodes.brokers[namespace]))
	b.nodes.mu.Unlock()
	annotate := func(policies string) error {
		m := bare{policies: policies, pods: len(names)}
		before, err := b.plane.cpu()
		if err != nil {
			return err
		}
		begin := time.Now()
		all, ctx := errgroup.WithContext(ctx)
		all.SetLimit(atATime)
		for _, pod := range names {
			all.Go(func() error {
				return patch(ctx, pod, fmt.Sprintf(`"annotations":{%q:%q}`, contract.ProfilesDigestAnnotation, policies))
			})
		}
		if err := all.Wait(); err != nil {
			return err
		}
		m.took = time.Since(begin)
		after, err := b.plane.cpu()
		m.planeTimes = planeTimes{after.apiServer - before.apiServer, after.etcd - before.etcd}
		b.results.bare = append(b.results.bare, m)
		return err
	}

	if err := annotate("the webhooks of the chart"); err != nil {
		return err
	}
	bindings := b.clients.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	if err := bindings.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	if err := runner.Eventually(ctx, readyLimit, "the policies refuse nothing", func(ctx context.Context) error {
		return patch(ctx, names[0], `"labels":{"another":"label"}`, metav1.DryRunAll)
	}); err != nil {
		return err
	}
	if err := annotate("none"); err != nil {
		return err
	}
	if b.options.report == "" {
		return nil
	}
	return runner.Write(b.options.report, b.results.markdown())
}

// writeBare writes the cost of the annotations alone in the API server.
func (r *results) writeBare(d *strings.Builder) {
	if len(r.bare) == 0 {
		return
	}
	fmt.Fprintf(d, "\n## The annotations alone\n\nAt the end the operator is stopped, and a client with its token writes the annotation of the %s pods of one namespace, %d at a time,\nas the operator does. Nothing else happens meanwhile, and these pods have no snapshots any more. So no operator can be faster.\n\n", measurement.Thousands(r.bare[0].pods), atATime)
	d.WriteString("| admission policies | time | processor time of the API server for each pod | of etcd |\n|---|---|---|---|\n")
	for _, m := range r.bare {
		perPod := func(t time.Duration) string { return fmt.Sprintf("%.1f ms", t.Seconds()*1000/float64(m.pods)) }
		fmt.Fprintf(d, "| %s | %s | %s | %s |\n", m.policies, seconds(m.took), perPod(m.apiServer), perPod(m.etcd))
	}
}
