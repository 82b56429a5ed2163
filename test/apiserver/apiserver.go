// SPDX-License-Identifier: Apache-2.0

// Package apiserver starts a real kube-apiserver and etcd for tests, with this
// project's CustomResourceDefinitions installed.
//
// The binaries kube-apiserver and etcd come from the folder that the
// environment variable KUBEBUILDER_ASSETS names, else from cluster/bin in the
// cache folder of the repository, where hack/cluster puts them. Without them
// Start fails: a test that needs an API server never passes without one.
//
// There is no controller manager, no scheduler and no kubelet: a pod stays as
// the test created it, and a deleted namespace stays terminating.
package apiserver

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/loopback"
)

// startTime is how long each step of starting and stopping an API server may take.
const startTime = 2 * time.Minute

// host is where the servers listen.
const host = "127.0.0.1"

// Start starts an API server on free ports of loopback. The function that it
// returns stops it and removes what it wrote; call it even when a test failed.
func Start() (*rest.Config, func() error, error) {
	root, err := environment.Repository()
	if err != nil {
		return nil, nil, err
	}
	return start(nil, filepath.Join(root, "config", "crd", "bases"))
}

// start starts an API server with further arguments and with the CustomResourceDefinitions of the folders.
func start(arguments map[string]string, definitions ...string) (*rest.Config, func() error, error) {
	assets, err := Assets()
	if err != nil {
		return nil, nil, err
	}
	server := &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths:     definitions,
		ErrorIfCRDPathMissing: true,
		// A machine with much other work needs more time than the 20 and 10 seconds that envtest waits.
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: startTime},
		ControlPlaneStartTimeout: startTime,
		ControlPlaneStopTimeout:  startTime,
	}
	if err := Reserve(&server.ControlPlane); err != nil {
		return nil, nil, err
	}
	for name, value := range arguments {
		server.ControlPlane.GetAPIServer().Configure().Set(name, value)
	}
	config, err := server.Start()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the API server: %w", err), server.Stop())
	}
	return config, server.Stop, nil
}

// Reserve gives etcd and the API server of a control plane that does not run yet ports that no other
// program gets. Package envtest chooses ports that are free, and another program can take them before
// the servers do.
func Reserve(plane *envtest.ControlPlane) error {
	client, err := loopback.Reserve(host)
	if err != nil {
		return err
	}
	serving, err := loopback.Reserve(host)
	if err != nil {
		return err
	}
	if plane.Etcd == nil {
		plane.Etcd = &envtest.Etcd{}
	}
	plane.Etcd.URL = &url.URL{Scheme: "http", Host: client}
	plane.Etcd.Configure().Set("listen-peer-urls", "http://"+net.JoinHostPort(host, "0")) // it has no peers
	server := &plane.GetAPIServer().SecureServing
	server.Address, server.Port, err = net.SplitHostPort(serving)
	return err
}

// Assets returns the folder with the binaries kube-apiserver and etcd, and an error if one
// of them is missing.
func Assets() (string, error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		root, err := environment.Repository()
		if err != nil {
			return "", err
		}
		cache, err := environment.Cache(root)
		if err != nil {
			return "", err
		}
		assets = filepath.Join(cache, "cluster", "bin")
	}
	for _, name := range []string{"kube-apiserver", "etcd"} {
		if _, err := os.Stat(filepath.Join(assets, name)); err != nil {
			return "", fmt.Errorf("tests against an API server need %s in %s (set KUBEBUILDER_ASSETS, or compile them by hack/cluster/cluster build): %w", name, assets, err)
		}
	}
	return assets, nil
}
