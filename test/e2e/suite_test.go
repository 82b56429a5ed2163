// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// suite is what all tests share: the cluster with the installed chart, and clients of it with an administrator's rights.
type suite struct {
	installed
	load      *workload.Cluster
	cluster   *environment.Cluster
	helm      *environment.Helm
	config    *rest.Config
	client    client.Client
	clientset kubernetes.Interface
}

var shared *suite

func setUpSuite(state string) error {
	s := &suite{}
	if err := json.Unmarshal([]byte(state), &s.installed); err != nil {
		return fmt.Errorf("read %s: %w", installedVariable, err)
	}
	// The warnings of the API server belong into the output of the tests.
	log.SetLogger(funcr.New(func(prefix, arguments string) { progress("%s %s", prefix, arguments) }, funcr.Options{}))
	var err error
	if s.cluster, err = environment.LocalCluster(clusterName); err != nil {
		return err
	}
	if s.helm, err = environment.NewHelm(context.Background(), os.Stderr, s.cluster); err != nil {
		return err
	}
	if s.load, err = workload.Connect(s.cluster, s.Images); err != nil {
		return err
	}
	s.config, s.client, s.clientset = s.load.Config, s.load.Client, s.load.Clientset
	shared = s
	return nil
}

// restoreChart installs the chart with its own values at the end of a test that failed, so that later tests find the operator. A
// test that passes does this as its last step.
func restoreChart(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if _, err := shared.helm.Install(timeoutContext(t, 4*time.Minute), environment.Chart(shared.Repository), &shared.Images); err != nil {
			t.Errorf("installing the chart with its own values again: %v", err)
		}
	})
}

// as returns a client that impersonates another user.
func as(t testing.TB, user string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(shared.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	found, err := workload.ClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// kubectl runs kubectl as the cluster's administrator with input as its standard input, and returns its output.
func kubectl(t testing.TB, input string, arguments ...string) (string, error) {
	t.Helper()
	return shared.cluster.KubectlRun(t.Context(), strings.NewReader(input), arguments...)
}

// patience is how long a test waits for something whose speed it does not test. On a busy machine a pod may take more than a minute.
const patience = 3 * time.Minute

// eventually repeats a check until it succeeds, and fails the test with its last error when that takes too long.
func eventually(t testing.TB, within time.Duration, what string, check func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return
		}
		if waited := time.Since(began); waited > within {
			t.Fatalf("waited %.1f s in vain until %s: %v", waited.Seconds(), what, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("the test ended while waiting until %s: %v", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// must fails the test at once with an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expectRefused fails the test unless err is a refusal whose message has all the given parts.
func expectRefused(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("found no refusal, expected one that says %q", parts)
		return
	}
	for _, each := range parts {
		if !strings.Contains(err.Error(), each) {
			t.Errorf("found the refusal %q, expected it to say %q", err, each)
		}
	}
}

// timeoutContext returns a context for the cleanup after a test, because the context of the test has ended by then.
func timeoutContext(t testing.TB, timeout time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
	t.Cleanup(cancel)
	return ctx
}
