// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"
)

const lineFormat = "%-34s %-11s %9s %5s %9s %7s %8s %8s %8s %9s %6s %7s\n"

// printHead prints the names of the columns.
func printHead() {
	fmt.Println("Latencies are latencies of b's small hashes, in milliseconds; its errors are the errors of all calls, and of calls by new connections.")
	fmt.Printf(lineFormat, "attack", "verdict", "peak MiB", "kills", "b's calls", "errors", "p50", "p99", "max", "ordinary", "ratio", "again s")
}

// print prints the line of an attack, and below it what the attacker saw.
func (r *result) print() {
	ordinary, ratio := "-", "-"
	if r.ordinary.P99 > 0 {
		ordinary = milliseconds(r.ordinary.P99)
		ratio = fmt.Sprintf("%.1f", float64(r.during.P99)/float64(r.ordinary.P99))
	}
	again := "never"
	if r.served {
		again = fmt.Sprintf("%.2f", r.again.Seconds())
	}
	fmt.Printf(lineFormat, r.attack.name, r.verdict(), fmt.Sprintf("%.1f", float64(r.peak)/(1<<20)), fmt.Sprint(r.kills),
		fmt.Sprint(r.during.Calls), fmt.Sprintf("%d+%d", r.during.Errors, r.during.FreshErrors),
		milliseconds(r.during.P50), milliseconds(r.during.P99), milliseconds(r.during.Max), ordinary, ratio, again)
	fmt.Printf("    in %.1f s a saw: %s\n", r.took.Seconds(), r.tally)
	if r.exit != "" {
		fmt.Printf("    the broker ended: %s\n", r.exit)
	}
	if r.stopsSlowly {
		fmt.Printf("    the broker had to be killed afterwards: it did not stop within %s\n", stopLimit)
	}
	if r.during.Error != "" {
		fmt.Printf("    b's first error: %s\n", cut(r.during.Error, 200))
	}
	if r.during.FreshMax > callLimit/4 {
		fmt.Printf("    b's slowest call by a new connection took %s ms\n", milliseconds(r.during.FreshMax))
	}
	if r.probesFailed > 0 {
		fmt.Printf("    %d of %d probes of the status port failed\n", r.probesFailed, r.probes)
	}
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond))
}
