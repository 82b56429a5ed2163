// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/prometheus"
)

// lookAround prints commands to see more, and to remove everything.
func (d *demo) lookAround(pod string) {
	proxy := "kubectl get --raw /api/v1/namespaces/" + namespace + "/pods/" + pod
	d.step("Done. The application goes on calling. To look around:")
	d.line("export KUBECONFIG=%s", d.cluster.Kubeconfig)
	if kubectl, err := d.cluster.Kubectl(); err == nil && d.cluster.Local() {
		d.line(`export PATH="$PATH:%s"`, filepath.Dir(kubectl))
	}
	d.line("")
	d.line("%-100s %s", "kubectl get cprof,ccprof -A -o wide", "# who serves what")
	d.line("%-100s %s", "kubectl -n "+namespace+" describe cprof default", "# conditions and events")
	d.line("%-100s %s", "kubectl -n "+namespace+" logs deploy/app -c app", "# the application")
	d.line("%-100s %s", "kubectl -n "+namespace+" logs deploy/app -c crypto-broker", "# its broker")
	d.line("%-100s %s", "kubectl -n "+environment.Namespace+" logs deploy/"+environment.Release, "# the operator")
	d.line("%-100s %s", proxy+fmt.Sprintf(":%d/proxy/profiles", brokerPort), "# what the broker serves")
	d.line("%-100s %s", proxy+fmt.Sprintf(":%d/proxy/metrics", brokerPort), "# its metrics")
	variable := "KUBECONFIG=" + d.cluster.Kubeconfig + " "
	if d.cluster.Local() {
		variable = ""
		if d.cluster.Name != defaultCluster {
			variable = "CLUSTER=" + d.cluster.Name + " "
		}
		d.line("%-100s %s", variable+"make demo-prometheus", "# all metrics in Prometheus")
	}
	fmt.Fprintf(d, "\n%sTo remove everything:%s\n", d.bold, d.normal)
	d.line("%smake demo-down", variable)
}

// down removes the demo, and also its cluster if that is a local one.
func down(ctx context.Context, cluster *environment.Cluster, out *output) error {
	if cluster.Local() {
		return cluster.Down(ctx, out)
	}
	helm, err := environment.NewHelm(ctx, out, cluster)
	if err != nil {
		return err
	}
	if err := refuseForeignRelease(ctx, cluster, helm); err != nil {
		return err
	}
	out.step("Removing the demo from the cluster of KUBECONFIG=%s", cluster.Kubeconfig)
	// The profile is removed first, while the webhook still answers.
	if err := removeDemo(ctx, cluster); err != nil {
		return err
	}
	if _, err := helm.Uninstall(ctx); err != nil {
		return err
	}
	if _, err := cluster.KubectlRun(ctx, nil, "delete", "namespace", environment.Namespace, "--ignore-not-found", "--timeout=2m"); err != nil {
		return err
	}
	out.line("The CustomResourceDefinitions are left, because all profiles of the cluster would be deleted with them. To remove them as well:")
	out.line("kubectl delete crd cryptoprofiles.cryptobroker.io clustercryptoprofiles.cryptobroker.io")
	return nil
}

// runPrometheus scrapes the cluster until the context ends.
func runPrometheus(ctx context.Context, cluster *environment.Cluster, out *output) error {
	repository, err := environment.Repository()
	if err != nil {
		return err
	}
	cache, err := environment.Cache(repository)
	if err != nil {
		return err
	}
	if _, err := os.Stat(cluster.Kubeconfig); err != nil {
		return fmt.Errorf("the cluster %q does not run; start it with: make demo", cluster.Name)
	}
	program, err := prometheus.Find(ctx, out, cache)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "crypto-broker-prometheus-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	server, err := prometheus.Start(ctx, program, folder, cluster.Kubeconfig, prometheus.Options{Interval: 5 * time.Second})
	if err != nil {
		return err
	}
	out.step("Prometheus answers on %s/targets and scrapes every 5 s. Ctrl-C ends it.", server.URL)
	out.line("The dashboards for Grafana are in %s", filepath.Join(environment.Chart(repository), "dashboards"))
	<-ctx.Done()
	return server.Stop()
}
