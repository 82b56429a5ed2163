// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// ownRelease is the label of a release that the demo installed.
const ownRelease = "installed-by=crypto-broker-demo"

// refuseForeignRelease returns an error if a cluster of the user has an operator that the demo did not install, because
// the demo would replace and later remove it.
func refuseForeignRelease(ctx context.Context, cluster *environment.Cluster, helm *environment.Helm) error {
	if cluster.Local() {
		return nil
	}
	list := []string{"list", "--short", "--namespace", environment.Namespace, "--filter", "^" + environment.Release + "$"}
	found, err := helm.Run(ctx, list...)
	if err != nil {
		return err
	}
	own, err := helm.Run(ctx, append(list, "--selector", ownRelease)...)
	if err != nil {
		return err
	}
	if strings.TrimSpace(found) != "" && strings.TrimSpace(own) == "" {
		return fmt.Errorf("the cluster of KUBECONFIG=%s has a release %q in namespace %q that the demo did not install, expected none; use another cluster",
			cluster.Kubeconfig, environment.Release, environment.Namespace)
	}
	return nil
}
