// SPDX-License-Identifier: Apache-2.0

// Package workload has code that is shared by programs and tests that put load on the operator in a real cluster: clients of the
// API server, pods of the demo application, profiles that change, and the processes of containers.
//
// Its functions return errors and wait for nothing unless they say so.
package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// Cluster is a running cluster with the installed chart, and clients of it with the rights
// of an administrator.
type Cluster struct {
	*environment.Cluster
	Images    environment.Images
	Config    *rest.Config
	Client    client.Client
	Clientset kubernetes.Interface
}

// Connect makes the clients of a cluster. It calls nothing.
func Connect(cluster *environment.Cluster, images environment.Images) (*Cluster, error) {
	c := &Cluster{Cluster: cluster, Images: images}
	var err error
	if c.Config, err = clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig); err != nil {
		return nil, err
	}
	c.Config.QPS, c.Config.Burst = 200, 400
	if c.Client, err = ClientFor(c.Config); err != nil {
		return nil, err
	}
	c.Clientset, err = kubernetes.NewForConfig(c.Config)
	return c, err
}

// ClientFor returns a client of the types of Kubernetes and of this project.
func ClientFor(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// Tasks returns the process ids, in the node, of all containers that run. The keys are the
// container ids as the status of a pod has them.
func (c *Cluster) Tasks(ctx context.Context) (map[string]string, error) {
	output, err := c.Exec(ctx, "ctr", "-n", "k8s.io", "tasks", "list")
	if err != nil {
		return nil, fmt.Errorf("list the tasks of containerd: %w", err)
	}
	processes := map[string]string{}
	for line := range strings.Lines(output) {
		if fields := strings.Fields(line); len(fields) >= 3 && fields[2] == "RUNNING" {
			processes["containerd://"+fields[0]] = fields[1]
		}
	}
	return processes, nil
}
