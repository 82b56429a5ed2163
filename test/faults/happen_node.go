// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/test/runner"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// breakNothing changes the profile and breaks nothing.
func breakNothing(ctx context.Context, t *trial) error {
	t.causeEnded()
	t.changed(ctx)
	return nil
}

// partsAway returns a fault that kills parts of the cluster, changes the profile while they
// are away, and starts them again.
func partsAway(away time.Duration, parts ...string) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		t.undo(func(ctx context.Context) error { return t.Start(ctx, parts...) })
		if err := t.Stop(ctx, parts...); err != nil {
			return err
		}
		t.change(ctx)
		if err := pause(ctx, away); err != nil {
			return err
		}
		return t.endFault(ctx)
	}
}

// slowServer lets the API server run for a tenth of the time.
func slowServer(ctx context.Context, t *trial) error {
	process, err := t.partProcess("kube-apiserver")
	if err != nil {
		return err
	}
	t.undo(func(context.Context) error { return syscall.Kill(process, syscall.SIGCONT) })
	t.change(ctx)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		for _, phase := range []struct {
			signal syscall.Signal
			lasts  time.Duration
		}{{syscall.SIGSTOP, 900 * time.Millisecond}, {syscall.SIGCONT, 100 * time.Millisecond}} {
			if err := syscall.Kill(process, phase.signal); err != nil {
				return err
			}
			if err := pause(ctx, phase.lasts); err != nil {
				return err
			}
		}
	}
	return t.endFault(ctx)
}

// brokerKilled kills the broker of one pod.
func brokerKilled(ctx context.Context, t *trial) error {
	broker, err := t.brokerProcess(ctx, &t.pods[0])
	if err != nil {
		return err
	}
	t.change(ctx)
	if err := kill(broker); err != nil {
		return err
	}
	t.causeEnded()
	return nil
}

// brokerOutOfMemory has a process in the broker's control group take most of the memory that
// the broker may have. The kernel kills the broker, which Kubernetes marks for that.
func brokerOutOfMemory(ctx context.Context, t *trial) error {
	broker, err := t.brokerProcess(ctx, &t.pods[1])
	if err != nil {
		return err
	}
	group, limit, err := memoryGroup(broker)
	if err != nil {
		return err
	}
	const others = 8 << 20 // memory that the shell, head and tail need themselves
	// tail keeps all its input in memory until the input ends, and then exits.
	script := fmt.Sprintf("echo $$ >%[1]s/cgroup.procs && head -c %[2]d /dev/zero | tail -c %[2]d >/dev/null", group, limit-others)
	taker := exec.CommandContext(ctx, "sh", "-c", script)
	if err := taker.Start(); err != nil {
		return err
	}
	t.undo(func(context.Context) error {
		_ = taker.Wait() // containerd may have ended it with the container
		return nil
	})
	t.change(ctx)
	if err := runner.Eventually(ctx, 30*time.Second, "the kernel kills a broker without memory", func(context.Context) error {
		if runs(broker) {
			return errors.New("it runs")
		}
		return nil
	}); err != nil {
		return err
	}
	if err := t.endFault(ctx); err != nil {
		return err
	}
	return runner.Eventually(ctx, time.Minute, "the status of the pod says why the broker ended", func(ctx context.Context) error {
		pod := t.pods[1].DeepCopy()
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		last := pod.Status.InitContainerStatuses[0].LastTerminationState.Terminated
		if last == nil || last.Reason != "OOMKilled" {
			return fmt.Errorf("%s, ended before: %+v", workload.DescribeContainers(pod), last)
		}
		return nil
	})
}

// memoryGroup returns the folder of the control group that limits the memory of a process, of
// version 1 or 2, and the limit in bytes.
func memoryGroup(process int) (folder string, limit int64, err error) {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", process))
	if err != nil {
		return "", 0, err
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", 0, err
	}
	for line := range strings.Lines(string(groups)) {
		_, path, _ := strings.Cut(line, ":")
		_, path, _ = strings.Cut(strings.TrimSpace(path), ":")
		for mount := range strings.Lines(string(mounts)) {
			words := strings.Fields(mount)
			if words[2] != "cgroup" && words[2] != "cgroup2" {
				continue
			}
			folder := filepath.Join(words[1], path)
			for _, file := range []string{"memory.limit_in_bytes", "memory.max"} {
				text, err := os.ReadFile(filepath.Join(folder, file))
				if err != nil {
					continue
				}
				limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
				return folder, limit, err
			}
		}
	}
	return "", 0, fmt.Errorf("found no control group with a memory limit for the process %d", process)
}

// diskFull fills the file system with the volumes of all pods.
func diskFull(ctx context.Context, t *trial) error {
	file := diskFolder + "/full"
	t.undo(func(ctx context.Context) error {
		_, err := t.Exec(ctx, "rm", "-f", file)
		return err
	})
	// cat ends with an error when the disk is full.
	if _, err := t.Exec(ctx, "sh", "-c", "cat /dev/zero >"+file+" 2>/dev/null; test -s "+file); err != nil {
		return err
	}
	t.change(ctx)
	if err := pause(ctx, 20*time.Second); err != nil {
		return err
	}
	return t.endFault(ctx)
}
