// SPDX-License-Identifier: Apache-2.0

// Package measurement has code that measuring programs share: the description of the machine, and
// medians.
package measurement

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Machine returns the number and the model of the processors, such as "2 × Intel(R) Xeon(R)
// CPU". If the model is not known, the architecture stands for it.
func Machine() string {
	model := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d × %s", runtime.NumCPU(), model)
}

// Load returns the load average of the last minute, or "unknown".
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	average, _, _ := strings.Cut(string(text), " ")
	return average
}

// Median returns the median of values in any order: of an even number of values the middle
// between the two in the middle, of no values 0.
func Median[T ~int | ~int64 | ~float64](values []T) T {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	lower, upper := sorted[(n-1)/2], sorted[n/2]
	return lower + (upper-lower)/2
}

// Spread is a median with its quartiles.
type Spread struct{ Low, Median, High float64 }

// SpreadOf returns the spread of values in any order, of no values the zero value.
func SpreadOf(values []float64) Spread {
	n := len(values)
	if n == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Spread{sorted[n/4], Median(values), sorted[n-1-n/4]}
}

// String implements fmt.Stringer: "1.20 (1.08–1.40)".
func (s Spread) String() string {
	digits := 2
	if s.Median >= 10 {
		digits = 1
	}
	if s.Median < 0.1 {
		digits = 4
	}
	return fmt.Sprintf("%.*f (%.*f–%.*f)", digits, s.Median, digits, s.Low, digits, s.High)
}
