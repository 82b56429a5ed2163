// SPDX-License-Identifier: Apache-2.0

// Command demo shows the operator on a real cluster: an application whose pod has one annotation hashes through its own
// broker, and a changed profile reaches the broker while the application makes calls.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

const usage = `Usage: demo [--cluster NAME] [COMMAND]

Commands:
  run          install everything, show it, and print commands to look around (the default)
  down         remove everything that run made
  prometheus   run Prometheus against the cluster until Ctrl-C (needs routes to its pods, as make cluster-up makes them)

Without KUBECONFIG, the demo uses a cluster on this machine, and starts it if it does not run (Linux, root). With
KUBECONFIG it uses the cluster of that file. Name one way for the images to get there:

  DEMO_IMAGE_REGISTRY  a registry and path to push the images to, for example registry.example/crypto-broker; uses the
                       credentials of "docker login", and the cluster's nodes have to be able to pull from there
  DEMO_IMAGE_LOAD      a command that loads image archives into the nodes, for example "kind load image-archive" or
                       "minikube image load"; the demo appends the archives as arguments

Options:
`

// defaultCluster is the cluster that "make cluster-up" starts.
const defaultCluster = "crypto-broker"

type options struct {
	cluster, registry, load string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, output io.Writer) error {
	o := options{registry: os.Getenv("DEMO_IMAGE_REGISTRY"), load: os.Getenv("DEMO_IMAGE_LOAD")}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.cluster, "cluster", defaultCluster, "name of the cluster on this machine")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	cluster, err := chooseCluster(o)
	if err != nil {
		return err
	}
	switch command := flags.Arg(0); {
	case flags.NArg() > 1:
		return fmt.Errorf("found %q behind the command, expected nothing; --help shows the commands", flags.Arg(1))
	case command == "" || command == "run":
		if err := requireWayForImages(o, cluster); err != nil {
			return err
		}
		d := &demo{options: o, cluster: cluster, output: newOutput(output)}
		return d.run(ctx)
	case command == "down":
		return down(ctx, cluster, newOutput(output))
	case command == "prometheus":
		return runPrometheus(ctx, cluster, newOutput(output))
	default:
		return fmt.Errorf("found the command %q, expected run, down or prometheus; --help describes them", command)
	}
}

// chooseCluster returns the cluster that KUBECONFIG names, or else a cluster on this machine.
func chooseCluster(o options) (*environment.Cluster, error) {
	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" {
		return environment.LocalCluster(o.cluster)
	}
	return environment.ClusterOf(kubeconfig)
}

// requireWayForImages returns an error if the demo has no way to load the images into the cluster. It is called before
// anything changes in the cluster.
func requireWayForImages(o options, cluster *environment.Cluster) error {
	if cluster.Local() || o.registry != "" || o.load != "" {
		return nil
	}
	return fmt.Errorf("KUBECONFIG=%s is not a cluster of \"make cluster-up\", so its nodes can't be given the images: "+
		"set DEMO_IMAGE_REGISTRY or DEMO_IMAGE_LOAD as --help describes, or unset KUBECONFIG to use a cluster on this machine",
		cluster.Kubeconfig)
}
