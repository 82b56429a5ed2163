// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// bench has all processes and clients of the measurement.
type bench struct {
	options      options
	plane        *controlPlane
	clients      *kubernetes.Clientset // for objects of Kubernetes
	objects      client.Client         // for namespaces and profiles
	installation *installation
	operator     *operator
	nodes        *nodes
	audit        *audit
	results      *results
	// algorithm is the index in algorithms of each changed profile, by name.
	algorithm map[client.ObjectKey]int
	unwatch   context.CancelFunc
}

// start starts the API server, installs the chart and starts the operator. What it started
// has to be stopped even if it returns an error.
func start(ctx context.Context, o options, programs string) (b *bench, err error) {
	b = &bench{options: o, nodes: newNodes(), results: newResults(o), algorithm: map[client.ObjectKey]int{}}
	if err := setUpNetwork(ctx); err != nil {
		return b, err
	}
	runner.Progress("starts etcd and the API server")
	if b.plane, err = startControlPlane(programs); err != nil {
		return b, err
	}
	if err := b.connect(); err != nil {
		return b, err
	}
	kubernetes, err := b.clients.ServerVersion()
	if err != nil {
		return b, err
	}
	b.results.kubernetes = kubernetes.GitVersion
	if b.installation, err = install(ctx, b.plane, b.clients, programs, programs); err != nil {
		return b, err
	}
	if err := b.nodes.listen(ctx); err != nil {
		return b, err
	}
	watching, unwatch := context.WithCancel(ctx)
	b.unwatch = unwatch
	if err := b.nodes.watch(watching, b.plane.config, b.clients); err != nil {
		return b, err
	}
	if b.operator, err = newOperator(b.installation, programs, programs); err != nil {
		return b, err
	}
	runner.Progress("starts the operator")
	if err := b.operator.start(ctx); err != nil {
		return b, err
	}
	b.audit, err = openAudit(b.plane.auditLog)
	return b, err
}

// connect makes the clients of this program.
func (b *bench) connect() (err error) {
	core := rest.CopyConfig(b.plane.config)
	core.ContentType = runtime.ContentTypeProtobuf
	if b.clients, err = kubernetes.NewForConfig(core); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	b.objects, err = client.New(b.plane.config, client.Options{Scheme: scheme})
	return err
}

// stop stops what was started.
func (b *bench) stop() error {
	var failed []error
	if b.unwatch != nil {
		b.unwatch()
	}
	if b.operator != nil {
		failed = append(failed, b.operator.stop(), b.operator.remove())
	}
	if b.installation != nil && b.installation.relay != nil {
		failed = append(failed, b.installation.stop())
	}
	failed = append(failed, b.nodes.stop())
	if b.plane != nil {
		failed = append(failed, b.plane.stop())
	}
	return errors.Join(failed...)
}

// counters are the values that are compared before and after a step.
type counters struct {
	operator, own time.Duration // processor times; own is the time of this program
	plane         planeTimes
	process       int // of the operator
	polls         int64
	stored        stored
}

func (b *bench) counters(ctx context.Context) (c counters, err error) {
	c.process, c.polls = b.operator.command.Process.Pid, b.nodes.polls.Load()
	if c.operator, err = measurement.ProcessorTime(c.process); err != nil {
		return c, err
	}
	if c.own, err = measurement.ProcessorTime(os.Getpid()); err != nil {
		return c, err
	}
	if c.plane, err = b.plane.cpu(); err != nil {
		return c, err
	}
	c.stored, err = b.plane.stored(ctx)
	return c, err
}

// confirmed returns from the operator's metrics how many brokers have confirmed the current set.
func (b *bench) confirmed(ctx context.Context) (int, error) {
	port, err := b.installation.port("metrics")
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, fmt.Errorf("read the metrics of the operator: %w", err)
	}
	sum := 0.0
	for _, m := range families["crypto_broker_operator_pods"].GetMetric() {
		for _, label := range m.GetLabel() {
			if label.GetName() == "state" && label.GetValue() == "updated" {
				sum += m.GetGauge().GetValue()
			}
		}
	}
	return int(sum), nil
}
