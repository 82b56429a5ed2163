// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

const (
	// clusterName is the name of the program's own cluster.
	clusterName = "faults"
	// namespace is where the applications are, and profileName is the resource of the
	// profile that they use.
	namespace   = "faults"
	profileName = "default"
	// applications is the number of pods that call their brokers.
	applications = 2
	// diskSize is the size of the file system for the volumes of pods.
	diskSize = "64m"
	// diskFolder is where the node has that file system.
	diskFolder = "/run/faults"
)

// suite is the cluster with the operator and the applications.
type suite struct {
	*workload.Cluster
	keep bool
	// next is the index of the algorithm of the next change.
	next int
}

// start brings the cluster, the operator and the applications up. If it returns a suite, the
// suite has to be stopped, even after an error.
func start(ctx context.Context, o options) (*suite, error) {
	local, err := environment.LocalCluster(clusterName)
	if err != nil {
		return nil, err
	}
	s := &suite{Cluster: &workload.Cluster{Cluster: local}, keep: o.keep}
	if !o.keep {
		if err := local.Down(ctx, os.Stderr); err != nil { // the cluster of a run that was killed
			return nil, err
		}
	}
	if err := local.UpWithoutDNS(ctx, os.Stderr); err != nil {
		return s, err
	}
	if err := s.limitDisk(ctx); err != nil {
		return s, err
	}
	repository, err := environment.Repository()
	if err != nil {
		return s, err
	}
	cache, err := environment.Cache(repository)
	if err != nil {
		return s, err
	}
	images, err := environment.Install(ctx, os.Stderr, local, environment.ImageOptions{
		Out: filepath.Join(cache, "faults", "images"), Only: []string{"operator", "broker", "demo-app"}})
	if err != nil {
		return s, err
	}
	if s.Cluster, err = connect(local, *images); err != nil {
		return s, err
	}
	runner.Progress("starting %d pods with an application that calls its broker", applications)
	return s, s.deploy(ctx)
}

// connect returns clients whose requests end after some seconds, whatever the API server does.
func connect(local *environment.Cluster, images environment.Images) (*workload.Cluster, error) {
	c, err := workload.Connect(local, images)
	if err != nil {
		return nil, err
	}
	c.Config = rest.CopyConfig(c.Config)
	c.Config.Timeout = 15 * time.Second
	if c.Client, err = workload.ClientFor(c.Config); err != nil {
		return nil, err
	}
	c.Clientset, err = kubernetes.NewForConfig(c.Config)
	return c, err
}

// stop removes the cluster, even if the context has ended.
func (s *suite) stop(ctx context.Context) error {
	if s.keep {
		runner.Progress("the cluster stays: export KUBECONFIG=%s", s.Kubeconfig)
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return s.Down(ctx, os.Stderr)
}

// limitDisk gives the volumes of pods a small file system of their own, which a fault can
// fill.
func (s *suite) limitDisk(ctx context.Context) error {
	script := fmt.Sprintf(`mountpoint -q %[1]s && exit
mkdir -p %[1]s /var/lib/kubelet/pods
mount -t tmpfs -o size=%[2]s faults %[1]s
mkdir %[1]s/pods
mount --bind %[1]s/pods /var/lib/kubelet/pods`, diskFolder, diskSize)
	_, err := s.Exec(ctx, "sh", "-ec", script)
	return err
}

// deploy creates the namespace, the profile and the applications, and waits until the
// applications call.
func (s *suite) deploy(ctx context.Context) error {
	for _, each := range []func() error{
		func() error {
			return s.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		},
		func() error {
			return s.Client.Create(ctx, &v1alpha1.CryptoProfile{
				ObjectMeta: metav1.ObjectMeta{Name: profileName, Namespace: namespace},
				Spec:       workload.Hashing("Default", workload.Algorithms[len(workload.Algorithms)-1]),
			})
		},
		func() error {
			return s.Client.Create(ctx, s.Deployment(namespace, "app", applications, workload.Load))
		},
	} {
		if err := each(); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// pause waits for a time, or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
