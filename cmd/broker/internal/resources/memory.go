// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path"
	"runtime/debug"
	"strconv"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/tuning"
)

// minInFlight is the memory that the largest call takes, in bytes.
const minInFlight = 4 << 20

// memoryPlan divides the memory of the broker. All values are in bytes; 0 keeps the
// default.
type memoryPlan struct {
	limit int64
	// collector is the memory limit of Go's garbage collector.
	collector int64
	// inFlight is for requests and replies.
	inFlight int64
}

// planMemory returns how much memory the broker may take. The limit is given, from the command
// line, if it is not 0. Otherwise it is the limit of the control group, or else GOMEMLIMIT
// (math.MaxInt64 for none). If GOMEMLIMIT is set, the collector keeps it.
func planMemory(root fs.FS, given, gomemlimit int64) (memoryPlan, error) {
	plan := memoryPlan{limit: given}
	if plan.limit == 0 {
		var err error
		if plan.limit, err = controlGroupLimit(root); err != nil {
			return memoryPlan{}, err
		}
	}
	switch {
	case gomemlimit != math.MaxInt64:
		plan.collector = gomemlimit
		if plan.limit == 0 {
			plan.limit = gomemlimit
		}
	default:
		plan.collector = plan.limit / 8 * 7 // the rest is for memory that Go does not count
	}
	if plan.limit > 0 {
		plan.inFlight = max(minInFlight, plan.limit/4)
	}
	return plan, nil
}

// UseMemory sets the memory limit of Go's garbage collector. given is the limit of the
// command line in bytes, 0 for none. UseMemory returns how many bytes are for requests in
// flight, 0 if no limit is known.
func UseMemory(root fs.FS, given int64, logger *slog.Logger) (inFlight int64) {
	plan, err := planMemory(root, given, debug.SetMemoryLimit(-1))
	if err != nil {
		logger.Warn("cannot read the memory limit of the control group: set --memory-limit", "error", err)
	}
	tuning.EaseCollector(plan.limit)
	if plan.limit == 0 {
		return 0
	}
	debug.SetMemoryLimit(plan.collector)
	logger.Info("memory limits", "limit", plan.limit, "collector", plan.collector, "inFlight", plan.inFlight)
	return plan.inFlight
}

// controlGroupLimit returns the lowest memory limit of the process's control group and
// its visible parents, in bytes; 0 for none.
func controlGroupLimit(root fs.FS) (int64, error) {
	lowest := int64(0)
	err := eachControlGroup(root, "memory", func(dir string, version int) error {
		name := path.Join(dir, "memory.max")
		if version == 1 {
			name = path.Join(dir, "memory.limit_in_bytes")
		}
		limit, err := readLimit(root, name)
		if limit > 0 && (lowest == 0 || limit < lowest) {
			lowest = limit
		}
		return err
	})
	return lowest, err
}

// readLimit reads one limit, 0 if there is none.
func readLimit(root fs.FS, name string) (int64, error) {
	value, err := readControl(root, name)
	if err != nil || value == "" || value == "max" {
		return 0, err
	}
	limit, err := strconv.ParseInt(value, 10, 64)
	if err != nil || limit < 0 {
		return 0, fmt.Errorf("/%s has %q, expected a number of bytes or max", name, value)
	}
	// Version 1 of control groups writes the largest number of whole pages for no limit.
	if limit >= math.MaxInt64-1<<20 {
		return 0, nil
	}
	return limit, nil
}
