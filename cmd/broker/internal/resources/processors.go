// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// UseProcessors limits Go to one processor if the control group allows no more than one. Go
// itself follows the limit, but uses at least two processors, which then wait for each other.
// If the environment has GOMAXPROCS, UseProcessors changes nothing. In both cases it returns
// false. Otherwise it returns true, and the broker chooses the number of processors by its calls.
func UseProcessors(root fs.FS, lookup func(string) (string, bool), logger *slog.Logger) (choose bool) {
	if text, ok := lookup("GOMAXPROCS"); ok && text != "" {
		return false
	}
	limit, err := processorLimit(root)
	switch {
	case err != nil:
		logger.Warn("cannot read the CPU limit of the control group: set GOMAXPROCS", "error", err)
	case limit > 0 && limit <= 1:
		runtime.GOMAXPROCS(1)
		return false
	}
	return true
}

// processorLimit returns the lowest CPU limit of the process's control group and its
// visible parents, in processors; 0 for none.
func processorLimit(root fs.FS) (float64, error) {
	lowest := 0.0
	err := eachControlGroup(root, "cpu", func(dir string, version int) error {
		quota, period, err := readQuota(root, dir, version)
		if err != nil || quota == "" || quota == "max" || quota == "-1" {
			return err
		}
		used, badQuota := strconv.ParseUint(quota, 10, 63)
		of, badPeriod := strconv.ParseUint(period, 10, 63)
		if badQuota != nil || badPeriod != nil || used == 0 || of == 0 {
			return fmt.Errorf("the CPU limit of /%s is %q in %q, expected microseconds in microseconds", dir, quota, period)
		}
		if limit := float64(used) / float64(of); lowest == 0 || limit < lowest {
			lowest = limit
		}
		return nil
	})
	return lowest, err
}

// readQuota reads how long the group may use processors in each period.
func readQuota(root fs.FS, dir string, version int) (quota, period string, err error) {
	if version == 2 {
		text, err := readControl(root, path.Join(dir, "cpu.max"))
		quota, period, _ = strings.Cut(text, " ")
		return quota, period, err
	}
	if quota, err = readControl(root, path.Join(dir, "cpu.cfs_quota_us")); err == nil {
		period, err = readControl(root, path.Join(dir, "cpu.cfs_period_us"))
	}
	return quota, period, err
}
