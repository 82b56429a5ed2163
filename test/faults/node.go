// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// hostProcess returns the process id on this machine of a process of the node, whose process
// id in the node is known. The node has process ids of its own.
func (s *suite) hostProcess(inNode string) (int, error) {
	record, err := os.ReadFile(filepath.Join(filepath.Dir(s.Kubeconfig), "init"))
	if err != nil {
		return 0, fmt.Errorf("find the first process of the node: %w", err)
	}
	first, _, _ := strings.Cut(string(record), " ")
	group, err := nodeGroup(first)
	if err != nil {
		return 0, err
	}
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, folder := range folders {
		// A process that ended meanwhile has no files.
		status, _ := os.ReadFile(folder + "/status")
		ids := statusField(string(status), "NSpid:")
		if len(ids) < 2 || ids[1] != inNode {
			continue
		}
		if groups, _ := os.ReadFile(folder + "/cgroup"); strings.Contains(string(groups), group) {
			return strconv.Atoi(ids[0])
		}
	}
	return 0, fmt.Errorf("found no process %s of the node", inNode)
}

// nodeGroup returns the name of the control group of the cluster, to which its first process
// belongs.
func nodeGroup(process string) (string, error) {
	groups, err := os.ReadFile("/proc/" + process + "/cgroup")
	if err != nil {
		return "", fmt.Errorf("find the control group of the cluster: %w", err)
	}
	for line := range strings.Lines(string(groups)) {
		if path, found := strings.CutSuffix(strings.TrimSpace(line), "/node"); found {
			return path[strings.LastIndex(path, "/"):] + "/", nil
		}
	}
	return "", errors.New("found no control group of the cluster")
}

// statusField returns the words of a line of /proc/PID/status.
func statusField(status, name string) []string {
	for line := range strings.Lines(status) {
		if rest, found := strings.CutPrefix(line, name); found {
			return strings.Fields(rest)
		}
	}
	return nil
}

// partProcess returns the process id on this machine of a part of the node, such as
// "kube-apiserver".
func (s *suite) partProcess(part string) (int, error) {
	id, err := os.ReadFile(filepath.Join(filepath.Dir(s.Kubeconfig), "parts", part+".pid"))
	if err != nil {
		return 0, fmt.Errorf("find the process of %s: %w", part, err)
	}
	return s.hostProcess(strings.TrimSpace(string(id)))
}

// containerProcess returns the process id on this machine of a container of a pod.
func (s *suite) containerProcess(ctx context.Context, pod *corev1.Pod, container string) (int, error) {
	tasks, err := s.Tasks(ctx)
	if err != nil {
		return 0, err
	}
	for _, each := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if each.Name == container && tasks[each.ContainerID] != "" {
			return s.hostProcess(tasks[each.ContainerID])
		}
	}
	return 0, fmt.Errorf("the container %s of the pod %s does not run", container, pod.Name)
}

// brokerProcess returns the process id on this machine of the broker of a pod.
func (s *suite) brokerProcess(ctx context.Context, pod *corev1.Pod) (int, error) {
	return s.containerProcess(ctx, pod, contract.BrokerContainer)
}

// kill ends a process at once.
func kill(process int) error {
	if err := syscall.Kill(process, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the process %d: %w", process, err)
	}
	return nil
}

// runs reports whether a process exists and has not ended.
func runs(process int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	state := statusField(string(status), "State:")
	return err == nil && len(state) > 0 && state[0] != "Z" && state[0] != "X"
}
