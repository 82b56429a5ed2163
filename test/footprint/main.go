// SPDX-License-Identifier: Apache-2.0

// Command footprint measures how much memory the operator takes at its start in a
// cluster with many pods. It uses a real API server with pods that nobody runs, and
// starts the operator as a process of its own. See docs/running.md.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// operatorNamespace is where the operator has its Secrets.
const operatorNamespace = "crypto-broker-system"

// settle is how long the measurement goes on after all caches of the operator are full.
const settle = 15 * time.Second

func main() {
	pods := flag.Int("pods", 10_000, "how many `pods` the cluster has, without brokers and of about 4 KiB each")
	lists := flag.Bool("lists", false, "have the operator list the pods in parts, as with Kubernetes before 1.34, instead of streaming them")
	flag.Parse()
	log.SetLogger(logr.Discard())
	if err := run(context.Background(), *pods, *lists); err != nil {
		fmt.Fprintln(os.Stderr, "footprint:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, pods int, lists bool) (err error) {
	dir, err := os.MkdirTemp("", "footprint-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	operator := filepath.Join(dir, "operator")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", operator, "./cmd/operator").CombinedOutput(); err != nil {
		return fmt.Errorf("build the operator: %w: %s", err, out)
	}
	config, stop, err := apiserver.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	config.QPS = -1
	if err := fill(ctx, config, pods); err != nil {
		return err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := writeKubeconfig(config, kubeconfig); err != nil {
		return err
	}
	most, err := measure(ctx, operator, kubeconfig, lists)
	if err != nil {
		return err
	}
	fmt.Printf("%d pods: at most %s resident\n", pods, most)
	return nil
}

// fill creates the pods.
func fill(ctx context.Context, config *rest.Config, pods int) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	for _, name := range []string{operatorNamespace, "load"} {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	environment := make([]corev1.EnvVar, 50)
	for i := range environment {
		environment[i] = corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: strings.Repeat("v", 40)}
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(32)
	for i := range pods {
		all.Go(func() error {
			return c.Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "load", Name: fmt.Sprintf("pod-%d", i), Annotations: map[string]string{"text": strings.Repeat("x", 500)}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1", Env: environment}}},
			})
		})
	}
	return all.Wait()
}

func writeKubeconfig(config *rest.Config, file string) error {
	all := api.NewConfig()
	all.Clusters["test"] = &api.Cluster{Server: "https://" + strings.TrimPrefix(config.Host, "https://"), CertificateAuthorityData: config.CAData}
	all.AuthInfos["test"] = &api.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	all.Contexts["test"] = &api.Context{Cluster: "test", AuthInfo: "test"}
	all.CurrentContext = "test"
	return clientcmd.WriteToFile(*all, file)
}

// measure runs the operator until its caches are full and settled, and returns its
// highest resident memory.
func measure(ctx context.Context, operator, kubeconfig string, lists bool) (most string, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	//nolint:gosec // the program was just built
	process := exec.CommandContext(ctx, operator, "--namespace="+operatorNamespace, "--leader-elect=false", "--enable-webhooks=false",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--broker-image=broker:1")
	process.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "GOMEMLIMIT=448MiB", fmt.Sprintf("KUBE_FEATURE_WatchListClient=%t", !lists))
	output, err := process.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := process.Start(); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(output)
	for working := 0; working < 2 && lines.Scan(); {
		if text := lines.Text(); strings.Contains(text, `"Starting workers"`) && (strings.Contains(text, `"controller":"namespace"`) || strings.Contains(text, `"controller":"presence"`)) {
			working++
		}
	}
	timer := time.AfterFunc(settle, func() {
		if most, err = resident(process.Process.Pid); err != nil {
			fmt.Fprintln(os.Stderr, "footprint:", err)
		}
		end()
	})
	defer timer.Stop()
	for lines.Scan() { // until the operator has ended
	}
	_ = process.Wait() // the error of a process that was asked to end
	if most == "" {
		return "", errors.New("the operator ended by itself")
	}
	return most, nil
}

// resident returns the highest resident memory of a process so far.
func resident(pid int) (string, error) {
	memory, err := measurement.ProcessMemory(pid, "VmHWM")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d kB", memory[0]>>10), nil
}
