// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

func TestTheDashboardEndsWithTheProcessThatStartedIt(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var parent atomic.Int64
	parent.Store(7)
	looked := make(chan struct{}, 100)
	done := make(chan struct{})
	ended := false
	go func() {
		defer close(done)
		endWithParent(ctx, func() { ended = true }, func() int {
			looked <- struct{}{}
			return int(parent.Load())
		})
	}()
	<-looked
	<-looked // the command has checked again, and its parent still exists
	parent.Store(1)
	<-done
	if !ended {
		t.Error("it has not ended")
	}
}

func TestCommandsOfThePageGoToTheSameCluster(t *testing.T) {
	cmd := newDashboard(&cluster{})
	err := cmd.ParseFlags([]string{"--context", "the test's", "--kubeconfig=/tmp/config", "--as-group=a", "--as-group=b", "--token=secret", "--password=secret", "-n", "shop", "--port=1"})
	if err != nil {
		t.Fatal(err)
	}
	const want = ` --as-group=a --as-group=b --context='the test'\''s' --kubeconfig=/tmp/config`
	if found := connectionFlags(cmd.Flags()); found != want {
		t.Errorf("found %q, expected %q", found, want)
	}
}

func TestTheDashboardRefusesACommandLineThatItCannotServe(t *testing.T) {
	for sentence, test := range map[string]struct {
		args []string
		says string
	}{
		"a name that no namespace has":  {[]string{"dashboard", "--namespaces", "shop,../x"}, `found the namespace "../x", expected the name of one`},
		"a port that there is not":      {[]string{"dashboard", "--port", "70000"}, "value out of range"},
		"an argument":                   {[]string{"dashboard", "shop"}, `unexpected argument "shop"`},
		"all namespaces, which it does": {[]string{"dashboard", "-A"}, "unknown shorthand flag"},
	} {
		t.Run(sentence, func(t *testing.T) {
			code, stdout, stderr := call(t, "", test.args...)
			if code != program.ExitUsage || stdout != "" || !strings.Contains(stderr, test.says) {
				t.Errorf("exit code %d, found %q, %q", code, stdout, stderr)
			}
		})
	}
}
