// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// writeFootprints writes a column for each server, and compares the column of the broker with the targets.
func (r *results) writeFootprints(d *strings.Builder) {
	if len(r.footprints) == 0 {
		return
	}
	limit := "in a control group of " + measurement.Mebibytes(podMemory)
	if !r.grouped {
		limit = "and a limit of " + measurement.Mebibytes(podMemory) + " that the broker only is told of"
	}
	broker := r.footprints[0]
	rows := []struct {
		about string
		cell  func(footprint) string
		// wanted is the target, empty if there is none.
		wanted string
		met    bool
	}{
		{
			fmt.Sprintf("from its start to the first reply: median and slowest of %d", len(broker.Starts)), footprint.startsText,
			"median < " + milliseconds(startTarget), measurement.Median(broker.Starts) < startTarget,
		},
		{
			fmt.Sprintf("resident when idle: least, median and most of %d starts", len(broker.Idle)),
			func(f footprint) string { return rangeOf(f.Idle) },
			"most < " + measurement.Mebibytes(idleTarget), slices.Max(broker.Idle) < idleTarget,
		},
		{"of it without the program", func(f footprint) string { return rangeOf(f.Own) }, "", false},
		{
			fmt.Sprintf("most resident with %d busy connections", busyConnections),
			func(f footprint) string { return f.Busy.String() },
			"< " + measurement.Mebibytes(busyTarget), broker.Busy.Failed+broker.Busy.Refused == 0 && broker.Busy.Resident < busyTarget,
		},
		{"most resident with many small calls", func(f footprint) string { return f.Crowded.String() }, "", false},
		{"most with many small calls, " + limit, func(f footprint) string { return f.Bounded.String() }, "", false},
	}
	d.WriteString("| |")
	for _, f := range r.footprints {
		fmt.Fprintf(d, " %s |", waysAbout[f.Way])
	}
	fmt.Fprintf(d, " target | |\n|---|%s---|---|\n", strings.Repeat("---|", len(r.footprints)))
	for _, row := range rows {
		fmt.Fprintf(d, "| %s |", row.about)
		for _, f := range r.footprints {
			fmt.Fprintf(d, " %s |", row.cell(f))
		}
		verdict := ""
		if row.wanted != "" {
			verdict = met(row.met)
		}
		fmt.Fprintf(d, " %s |\n", strings.Join(dashed(row.wanted, verdict), " | "))
	}
	fmt.Fprintf(d, "\nMany small calls are %s.", r.options.crowd)
	if !r.grouped {
		d.WriteString(" This machine has no control groups for this program: the broker had `--memory-limit`, the bare server no limit.")
	}
	d.WriteString("\n\n")
}

func (f footprint) startsText() string {
	if len(f.Starts) == 0 {
		return "–"
	}
	return milliseconds(measurement.Median(f.Starts)) + ", " + milliseconds(slices.Max(f.Starts))
}

// String returns the memory, or, if calls failed, their number instead.
func (b burden) String() string {
	var text string
	switch {
	case b.Killed:
		return "killed by the system"
	case b.Failed > 0:
		return fmt.Sprintf("%s of %s calls failed", measurement.Thousands(b.Failed), measurement.Thousands(b.Calls))
	case b.Peak > 0:
		text = fmt.Sprintf("%s resident, %s in the group", measurement.Mebibytes(b.Resident), measurement.Mebibytes(b.Peak))
	default:
		text = measurement.Mebibytes(b.Resident)
	}
	if b.Refused > 0 {
		text += fmt.Sprintf("; %s of %s calls refused", measurement.Thousands(b.Refused), measurement.Thousands(b.Calls))
	}
	return text
}

// rangeOf returns the range of sorted values in bytes, as text.
func rangeOf(values []int64) string {
	if len(values) == 0 {
		return "–"
	}
	return strings.Join([]string{measurement.Mebibytes(values[0]), measurement.Mebibytes(measurement.Median(values)), measurement.Mebibytes(values[len(values)-1])}, ", ")
}

func met(yes bool) string {
	if yes {
		return "met"
	}
	return "**missed**"
}
