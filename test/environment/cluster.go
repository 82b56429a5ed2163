// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Cluster is a cluster that hack/cluster/cluster starts on this machine, or another one of the user's.
type Cluster struct {
	// Name is the name of a cluster of hack/cluster/cluster; empty for any other cluster.
	Name string
	// Kubeconfig is the path of the credentials.
	Kubeconfig string

	script, cache string
}

// LocalCluster returns the cluster of that name on this machine, whether it runs or not.
func LocalCluster(name string) (*Cluster, error) {
	repository, err := Repository()
	if err != nil {
		return nil, err
	}
	cache, err := Cache(repository)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		Name:       name,
		Kubeconfig: filepath.Join(cache, "cluster", "state", name, "kubeconfig"),
		script:     filepath.Join(repository, "hack", "cluster", "cluster"),
		cache:      cache,
	}, nil
}

// ClusterOf returns the cluster that a kubeconfig belongs to. It is a local one if hack/cluster/cluster wrote the file.
func ClusterOf(kubeconfig string) (*Cluster, error) {
	if first, _, several := strings.Cut(kubeconfig, string(os.PathListSeparator)); several {
		return nil, fmt.Errorf("KUBECONFIG names several files, expected one, for example KUBECONFIG=%s", first)
	}
	path, err := filepath.Abs(kubeconfig)
	if err != nil {
		return nil, err
	}
	cluster, err := LocalCluster(filepath.Base(filepath.Dir(path)))
	if err != nil {
		return nil, err
	}
	if cluster.Kubeconfig == path {
		return cluster, nil // which need not run
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("KUBECONFIG names a file that can't be read: %w", err)
	}
	cluster.Name, cluster.Kubeconfig = "", path
	return cluster, nil
}

// Local reports whether the cluster is one of hack/cluster/cluster.
func (c *Cluster) Local() bool { return c.Name != "" }

// Up starts the cluster unless it runs.
func (c *Cluster) Up(ctx context.Context, progress io.Writer) error {
	_, err := c.run(ctx, progress, "up")
	return err
}

// UpWithoutDNS starts the cluster without CoreDNS, unless it runs. Then pods can't look up names, and CoreDNS need not be
// compiled.
func (c *Cluster) UpWithoutDNS(ctx context.Context, progress io.Writer) error {
	_, err := c.run(ctx, progress, "up", "--without-dns")
	return err
}

// UpSharing starts the cluster with a folder of this machine that every container has at SharedFolder.
func (c *Cluster) UpSharing(ctx context.Context, progress io.Writer, folder string) error {
	_, err := c.run(ctx, progress, "up", "--share", folder)
	return err
}

// SharedFolder is where containers have the folder that a cluster shares.
const SharedFolder = "/shared"

// Down removes the cluster and everything that belongs to it.
func (c *Cluster) Down(ctx context.Context, progress io.Writer) error {
	_, err := c.run(ctx, progress, "down")
	return err
}

// Load gives image archives to the cluster's node. In front of an OCI archive whose image has a tag and no name there is
// "NAME=".
func (c *Cluster) Load(ctx context.Context, progress io.Writer, archives ...string) error {
	_, err := c.run(ctx, progress, "load", archives...)
	return err
}

// Snapshot writes a snapshot of the cluster's etcd into a file, while the cluster runs.
func (c *Cluster) Snapshot(ctx context.Context, progress io.Writer, file string) error {
	_, err := c.run(ctx, progress, "snapshot", file)
	return err
}

// Restore restores the etcd of a snapshot in the running cluster. Meanwhile pods go on, and the API server is away for
// some seconds.
func (c *Cluster) Restore(ctx context.Context, progress io.Writer, file string) error {
	_, err := c.run(ctx, progress, "restore", file)
	return err
}

// Stop kills parts of the cluster, such as "kubelet". What they started runs on.
func (c *Cluster) Stop(ctx context.Context, parts ...string) error {
	_, err := c.run(ctx, nil, "stop", parts...)
	return err
}

// Start starts parts of the cluster again that Stop stopped, in this order. It does not
// wait until they answer.
func (c *Cluster) Start(ctx context.Context, parts ...string) error {
	_, err := c.run(ctx, nil, "start", parts...)
	return err
}

// Exec runs a program inside the cluster's node and returns its output.
func (c *Cluster) Exec(ctx context.Context, arguments ...string) (string, error) {
	return c.run(ctx, nil, "exec", append([]string{"--"}, arguments...)...)
}

func (c *Cluster) run(ctx context.Context, progress io.Writer, verb string, arguments ...string) (string, error) {
	if !c.Local() {
		return "", fmt.Errorf("the cluster of %s was not started by hack/cluster/cluster, which can't do \"%s\" with it",
			c.Kubeconfig, verb)
	}
	return Command(ctx, "", progress, c.script, append([]string{"--name", c.Name, verb}, arguments...)...)
}

// Kubectl returns the path of kubectl: the program in PATH, or else the program of the local clusters.
func (c *Cluster) Kubectl() (string, error) {
	own := filepath.Join(c.cache, "cluster", "bin", "kubectl")
	if c.Local() {
		return own, nil
	}
	if found, err := exec.LookPath("kubectl"); err == nil {
		return found, nil
	}
	if _, err := os.Stat(own); err != nil {
		return "", fmt.Errorf("there is no kubectl in PATH; install it, or build one with: hack/cluster/cluster build")
	}
	return own, nil
}

// KubectlRun runs kubectl with the cluster's credentials; input, if any, is its standard input.
func (c *Cluster) KubectlRun(ctx context.Context, input io.Reader, arguments ...string) (string, error) {
	kubectl, err := c.Kubectl()
	if err != nil {
		return "", err
	}
	return command(ctx, "", []string{"KUBECONFIG=" + c.Kubeconfig}, input, nil, kubectl, arguments...)
}
