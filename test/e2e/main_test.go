// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// clusterName is the name of the tests' own cluster.
const clusterName = "e2e"

// installed is the information that the process that brings everything up passes to the process that runs the tests.
type installed struct {
	Repository string
	Cache      string
	Images     environment.Images
}

// installedVariable holds it as JSON, and marks the process that runs the tests.
const installedVariable = "CRYPTO_BROKER_E2E_INSTALLED"

// TestMain runs the tests in a second process. So the cluster is removed however the tests end: by a failure, a panic, a timeout or
// Ctrl-C.
func TestMain(m *testing.M) {
	flag.Parse()
	if state := os.Getenv(installedVariable); state != "" {
		if err := setUpSuite(state); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	if flag.Lookup("test.list").Value.String() != "" {
		os.Exit(m.Run()) // with -list, the program lists the tests and runs none
	}
	status, err := supervise()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		status = 1
	}
	os.Exit(status)
}

// supervise brings everything up, runs the tests and takes everything down. The status is the status of the tests.
func supervise() (status int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	cluster, err := environment.LocalCluster(clusterName)
	if err != nil {
		return 1, err
	}
	keep := os.Getenv("E2E_KEEP") == "1"
	defer func() {
		if keep {
			progress("the cluster stays, as E2E_KEEP=1 asks for: export KUBECONFIG=%s", cluster.Kubeconfig)
			return
		}
		// The context may have ended, but the cluster still has to be removed.
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, cluster.Down(down, os.Stderr))
	}()
	state, err := bringUp(ctx, cluster, keep)
	if err != nil {
		return 1, err
	}
	executable, err := os.Executable()
	if err != nil {
		return 1, err
	}
	tests := exec.CommandContext(ctx, executable, os.Args[1:]...)
	tests.Cancel = func() error { return tests.Process.Signal(syscall.SIGTERM) }
	tests.WaitDelay = 10 * time.Second
	tests.Env = append(os.Environ(), installedVariable+"="+string(state))
	tests.Stdin, tests.Stdout, tests.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = tests.Run()
	if os.Getenv("E2E_COVER") != "" {
		err = errors.Join(err, endPrograms(ctx, cluster))
	}
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			return exit.ExitCode(), nil
		}
		return 1, fmt.Errorf("run the tests: %w", err)
	}
	return 0, nil
}

// endPrograms ends the operator and the brokers gracefully, because a program writes its coverage data at its end.
func endPrograms(ctx context.Context, cluster *environment.Cluster) error {
	progress("ending the programs, so that they write their coverage data")
	helm, err := environment.NewHelm(ctx, os.Stderr, cluster)
	if err != nil {
		return err
	}
	_, err = helm.Uninstall(ctx)
	_, more := cluster.KubectlRun(ctx, nil, "delete", "pods", "--all-namespaces",
		"--field-selector=metadata.namespace!=kube-system", "--wait")
	return errors.Join(err, more)
}

// bringUp starts the cluster and installs the chart with images of the current source.
func bringUp(ctx context.Context, cluster *environment.Cluster, keep bool) ([]byte, error) {
	repository, err := environment.Repository()
	if err != nil {
		return nil, err
	}
	cache, err := environment.Cache(repository)
	if err != nil {
		return nil, err
	}
	if !keep {
		// A run that was killed may have left a cluster with the objects of an unfinished test.
		if err := cluster.Down(ctx, os.Stderr); err != nil {
			return nil, err
		}
	}
	options := environment.ImageOptions{
		Out:  filepath.Join(cache, "e2e", "images"),
		Only: []string{"broker", "operator", "gateway", "cli", "demo-app", "client-app", "broker-openssl"},
	}
	up := cluster.Up
	if folder := os.Getenv("E2E_COVER"); folder != "" {
		options.Cover = environment.SharedFolder
		up = func(ctx context.Context, progress io.Writer) error { return cluster.UpSharing(ctx, progress, folder) }
	}
	if err := up(ctx, os.Stderr); err != nil {
		return nil, err
	}
	images, err := environment.Install(ctx, os.Stderr, cluster, options)
	if err != nil {
		return nil, err
	}
	progress("the chart is installed, with the images %s", images.Tag)
	return json.Marshal(installed{Repository: repository, Cache: cache, Images: *images})
}

func progress(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "e2e: "+time.Now().Format("15:04:05 ")+format+"\n", arguments...)
}
