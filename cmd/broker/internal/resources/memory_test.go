// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"math"
	"testing"
	"testing/fstest"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestTheMemoryLimitIsFound(t *testing.T) {
	const none = math.MaxInt64
	for sentence, test := range map[string]struct {
		files      fstest.MapFS
		flag       int64
		gomemlimit int64
		want       memoryPlan
	}{
		"in a container, version 2": {
			fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("134217728\n")},
			0, none, memoryPlan{128 << 20, 112 << 20, 32 << 20},
		},
		"in a container, version 1, whose group has a name that is not in sight": {
			fstest.MapFS{"proc/self/cgroup": file("8:memory:/kubepods/x\n3:cpuset:/\n0::/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("134217728\n")},
			0, none, memoryPlan{128 << 20, 112 << 20, 32 << 20},
		},
		"the lowest of a group and those above it": {
			fstest.MapFS{
				"proc/self/cgroup": file("0::/a.slice/b.service\n"), "sys/fs/cgroup/a.slice/memory.max": file("67108864\n"),
				"sys/fs/cgroup/a.slice/b.service/memory.max": file("134217728\n"),
			},
			0, none, memoryPlan{64 << 20, 56 << 20, 16 << 20},
		},
		"several controllers in one hierarchy": {
			fstest.MapFS{"proc/self/cgroup": file("4:cpu,memory:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("134217728\n")},
			0, none, memoryPlan{128 << 20, 112 << 20, 32 << 20},
		},
		"no limit, version 2": {
			fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, 0, none, memoryPlan{},
		},
		"no limit, version 1": {
			fstest.MapFS{"proc/self/cgroup": file("8:memory:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n")}, 0, none, memoryPlan{},
		},
		"a system without control groups": {fstest.MapFS{}, 0, none, memoryPlan{}},
		"the flag comes before the control group": {
			fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("134217728\n")},
			64 << 20, none, memoryPlan{64 << 20, 56 << 20, 16 << 20},
		},
		"GOMEMLIMIT stays what it is": {
			fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("134217728\n")},
			0, 100 << 20, memoryPlan{128 << 20, 100 << 20, 32 << 20},
		},
		"GOMEMLIMIT is all there is": {fstest.MapFS{}, 0, 64 << 20, memoryPlan{64 << 20, 64 << 20, 16 << 20}},
		"the largest call fits in, however small": {
			fstest.MapFS{}, 8 << 20, none, memoryPlan{8 << 20, 7 << 20, 4 << 20},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := planMemory(test.files, test.flag, test.gomemlimit)
			if err != nil || got != test.want {
				t.Errorf("got %+v and %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestAMemoryLimitThatCannotBeReadIsNamed(t *testing.T) {
	for want, files := range map[string]fstest.MapFS{
		`/proc/self/cgroup has the line "nonsense", expected hierarchy:controllers:path`: {"proc/self/cgroup": file("nonsense\n")},
		`/sys/fs/cgroup/memory.max has "much", expected a number of bytes or max`: {
			"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("much\n"),
		},
	} {
		if _, err := planMemory(files, 0, math.MaxInt64); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
