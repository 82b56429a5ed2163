// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

// process describes the first process of a container as the kernel of the node sees it, with the user and group ids of the node.
type process struct {
	container   string
	user, group int64
	// groups are its supplemental groups in ascending order, without its primary group.
	groups []int64
	// firstUser is the user of the node that is root in the container.
	firstUser int64
}

// processOf returns the process of a running container.
func processOf(t testing.TB, pod *corev1.Pod, container string) process {
	t.Helper()
	for _, each := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if each.Name != container {
			continue
		}
		id, tasks := each.ContainerID, runningTasks(t)
		if tasks[id] == "" {
			t.Fatalf("the container %s, %s, is not among the running tasks of containerd: %q", container, id, tasks)
		}
		folder := "/proc/" + tasks[id]
		status, err := shared.cluster.Exec(t.Context(), "cat", folder+"/status")
		must(t, err)
		users, err := shared.cluster.Exec(t.Context(), "cat", folder+"/uid_map")
		must(t, err)
		found := process{container: container, groups: numbers(t, status, "Groups:")}
		found.user, found.group = numbers(t, status, "Uid:")[0], numbers(t, status, "Gid:")[0]
		found.groups = slices.DeleteFunc(found.groups, func(group int64) bool { return group == found.group })
		slices.Sort(found.groups)
		found.firstUser = numbers(t, users, "0")[0]
		return found
	}
	t.Fatalf("the pod %s has no container %s: %s", pod.Name, container, workload.DescribeContainers(pod))
	return process{}
}

// numbers returns the numbers in the line of a text that begins with a word.
func numbers(t testing.TB, text, word string) []int64 {
	t.Helper()
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != word {
			continue
		}
		found := make([]int64, len(fields)-1)
		for i := range found {
			_, err := fmt.Sscan(fields[i+1], &found[i])
			must(t, err)
		}
		return found
	}
	t.Fatalf("found no line that begins with %q in %q", word, text)
	return nil
}

// expectGroups fails the test unless a process has these supplemental groups, in ascending order, and no other.
func expectGroups(t testing.TB, found process, groups ...int64) {
	t.Helper()
	if !slices.Equal(found.groups, groups) {
		t.Errorf("%s: found the supplemental groups %d, expected %d", found.container, found.groups, groups)
	}
}
