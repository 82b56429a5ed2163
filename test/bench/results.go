// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// results are the results of all measurements.
type results struct {
	options    options
	began      time.Time
	took       time.Duration
	machine    string
	version    string
	grouped    bool // servers had control groups
	footprints []footprint
	cells      []*cell
}

func (r *results) cell(load, way string, callers int) *cell {
	for _, c := range r.cells {
		if c.load == load && c.way == way && c.callers == callers {
			return c
		}
	}
	return nil
}

// failed returns an error if calls failed. A missed target is a result and not an error.
func (r *results) failed() error {
	total := 0
	for _, f := range r.footprints {
		total += f.errors()
	}
	for _, c := range r.cells {
		total += c.errors()
		if c.err != nil {
			runner.Progress("%s, %s, %d callers: %v", c.load, c.way, c.callers, c.err)
		}
	}
	if total > 0 {
		return fmt.Errorf("%d calls failed", total)
	}
	return nil
}

// row is a cell as it is printed.
type row struct {
	Load, Way           string
	Callers             int
	Errors, Calls       int
	P50, P99            string `json:",omitempty"`
	PerSecond           string `json:",omitempty"`
	OfBound, OfFloor    string `json:",omitempty"`
	OfInside            string `json:",omitempty"`
	CPU, Allocs, Memory string `json:",omitempty"`
}

// rowOf renders a cell. If calls failed it has no figures, because failed calls are fast.
func (r *results) rowOf(c *cell) row {
	w := row{Load: c.load, Way: waysAbout[c.way], Callers: c.callers, Errors: c.errors()}
	for _, s := range c.samples {
		w.Calls += s.Calls
	}
	if w.Errors > 0 {
		return w
	}
	w.P50 = microseconds(measurement.Median(each(c.samples, func(s sample) time.Duration { return s.P50 })))
	w.P99 = microseconds(measurement.Median(each(c.samples, func(s sample) time.Duration { return s.P99 })))
	w.PerSecond = measurement.Thousands(measurement.Median(each(c.samples, perSecond)))
	w.OfBound, w.OfFloor, w.OfInside = r.ratioTo(multiplexed, c), r.ratioTo(floor, c), r.ratioTo(inProcess, c)
	w.CPU = microseconds(measurement.Median(each(c.samples, func(s sample) time.Duration { return s.CPU })))
	if c.way != inProcess {
		w.Allocs = fmt.Sprintf("%.0f", measurement.Median(each(c.samples, func(s sample) float64 { return s.Allocations })))
		w.Memory = measurement.Mebibytes(measurement.Median(each(c.samples, func(s sample) int64 { return s.Resident })))
	}
	return w
}

// ratioTo returns the throughput of a cell divided by the throughput of the same calls by
// another way; empty if there is none.
func (r *results) ratioTo(way string, c *cell) string {
	found, ok := ratio(c, r.cell(c.load, way, c.callers), perSecond)
	if !ok || c.way == way {
		return ""
	}
	return found.String()
}

// print writes everything for a reader at a terminal, as Markdown.
func (r *results) print(to io.Writer) { _, _ = io.WriteString(to, r.markdown()) }

// writeJSON writes everything for programs.
func (r *results) writeJSON(file string) error {
	type found struct {
		Load, Way string
		Callers   int
		Rounds    []sample
	}
	document := struct {
		Began           time.Time
		Machine, Broker string
		Go              string
		Rounds          int
		Time            time.Duration
		Footprints      []footprint
		Cells           []found
	}{r.began.UTC(), r.machine, r.version, runtime.Version(), r.options.rounds, r.options.time, r.footprints, nil}
	for _, c := range r.cells {
		document.Cells = append(document.Cells, found{c.load, c.way, c.callers, c.samples})
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// The lines between which a document has the results.
const (
	reportBegin = "<!-- make bench: begin -->"
	reportEnd   = "<!-- make bench: end -->"
)

// writeReport puts the results into a document.
func (r *results) writeReport(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	made, err := replaceBetween(string(text), r.markdown())
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(made), 0o644)
}

// replaceBetween replaces what is between the markers.
func replaceBetween(document, with string) (string, error) {
	before, rest, found := strings.Cut(document, reportBegin)
	if !found {
		return "", fmt.Errorf("has no line %q", reportBegin)
	}
	_, after, found := strings.Cut(rest, reportEnd)
	if !found {
		return "", fmt.Errorf("has no line %q behind that which begins the results", reportEnd)
	}
	return before + reportBegin + "\n\n" + with + "\n" + reportEnd + after, nil
}
