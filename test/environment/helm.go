// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// Where the chart is installed.
const (
	Release   = "crypto-broker-operator"
	Namespace = "crypto-broker-system"
)

// OperatorUser is the name of the installed operator as a user of the API server.
const OperatorUser = "system:serviceaccount:" + Namespace + ":" + Release

// Helm installs the chart into a cluster.
type Helm struct {
	path       string
	kubeconfig string
}

// NewHelm builds helm, unless it is in the cache already.
func NewHelm(ctx context.Context, progress io.Writer, cluster *Cluster) (*Helm, error) {
	repository, err := Repository()
	if err != nil {
		return nil, err
	}
	output, err := Command(ctx, "", progress, filepath.Join(repository, "hack", "tools", "build"), "helm")
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(strings.TrimSpace(output))
	return &Helm{path: path, kubeconfig: cluster.Kubeconfig}, err
}

// Path returns the path of the program.
func (h *Helm) Path() string { return h.path }

// Chart returns the folder of the chart in a checkout of the repository.
func Chart(repository string) string {
	return filepath.Join(repository, "charts", "crypto-broker-operator")
}

// InstallArguments returns the arguments for "helm" that install or upgrade a chart and wait until the operator is ready. The chart
// gets these images, or uses the images that it names itself if none are given.
func InstallArguments(chart string, images *Images, values ...string) []string {
	arguments := []string{"upgrade", Release, chart, "--install", "--namespace", Namespace, "--create-namespace",
		"--wait", "--timeout", "3m"}
	if images != nil {
		arguments = append(arguments,
			"--set-string", "image.registry="+images.Registry, "--set-string", "image.tag="+images.Tag,
			"--set-string", "broker.image.registry="+images.Registry, "--set-string", "broker.image.tag="+images.Tag)
	}
	for _, each := range values {
		arguments = append(arguments, "--set", each)
	}
	return arguments
}

// Install installs or upgrades a chart and waits until the operator is ready.
func (h *Helm) Install(ctx context.Context, chart string, images *Images, values ...string) (string, error) {
	return h.Run(ctx, InstallArguments(chart, images, values...)...)
}

// Uninstall removes the release and waits until it is gone.
func (h *Helm) Uninstall(ctx context.Context) (string, error) {
	return h.Run(ctx, "uninstall", Release, "--namespace", Namespace, "--wait", "--timeout", "2m")
}

// Run runs helm with the cluster's credentials.
func (h *Helm) Run(ctx context.Context, arguments ...string) (string, error) {
	// The user's own settings of helm must not change the result.
	own := []string{"KUBECONFIG=" + h.kubeconfig, "HELM_NAMESPACE=" + Namespace}
	output, err := command(ctx, "", own, nil, nil, h.path, arguments...)
	if err != nil {
		return output, fmt.Errorf("%w\n%s", err, output)
	}
	return output, nil
}
