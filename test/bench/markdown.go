// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// markdown renders the results.
func (r *results) markdown() string {
	var d strings.Builder
	fmt.Fprintf(&d, "`%s` in `test/bench`, %s, %s, %s, broker %s; %d rounds of %s, %s in all; %s.\n\n", r.options.command, r.machine, r.began.UTC().Format("2 January 2006 15:04 MST"),
		runtime.Version(), r.version, r.options.rounds, r.options.time, r.took.Round(time.Second), r.errorsText())
	r.writeFootprints(&d)
	r.writeTargets(&d)
	for _, l := range loadsAbout {
		r.writeLoad(&d, l.name, l.about)
	}
	return d.String()
}

func (r *results) errorsText() string {
	calls, errors := 0, 0
	for _, f := range r.footprints {
		calls += f.calls()
		errors += f.errors()
	}
	for _, c := range r.cells {
		errors += c.errors()
		for _, s := range c.samples {
			calls += s.Calls
		}
	}
	if errors == 0 {
		return measurement.Thousands(calls) + " calls, none failed"
	}
	return fmt.Sprintf("%s calls, %d failed", measurement.Thousands(calls), errors)
}

// writeTargets writes a row for each target, load and way, with all numbers of
// callers.
func (r *results) writeTargets(d *strings.Builder) {
	verdicts := r.judge()
	if len(verdicts) == 0 {
		return
	}
	var columns []string
	for _, callers := range r.options.callers {
		columns = append(columns, measurement.Count(callers, "caller"))
	}
	fmt.Fprintf(d, "Ratios are medians of the ratios of each round, with the quartiles in brackets. Rows of the bound have its own ratio: "+
		"for small calls it is the best way over a socket that we know.\n\n| target | load | way | wanted | %s |\n|---|---|---|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for len(verdicts) > 0 {
		v := verdicts[0]
		same := func(w verdict) bool { return w.target == v.target && w.load == v.load && w.way == v.way }
		wanted := fmt.Sprintf("≥ %g", v.target.wanted)
		if v.target.atMost {
			wanted = fmt.Sprintf("≤ %g", v.target.wanted)
		}
		fmt.Fprintf(d, "| %s | %s | %s | %s |", v.target.about, aboutLoad(v.load), waysAbout[v.way], wanted)
		for _, callers := range r.options.callers {
			cell := "–"
			for _, w := range verdicts {
				if same(w) && w.callers == callers {
					cell = w.found.String()
					if !w.met {
						cell = "**" + cell + " missed**"
					}
				}
			}
			fmt.Fprintf(d, " %s |", cell)
		}
		d.WriteString("\n")
		verdicts = slices.DeleteFunc(verdicts, same)
		if len(verdicts) == 0 || verdicts[0].target != v.target || verdicts[0].load != v.load {
			r.writeBound(d, v.target, v.load)
		}
	}
	d.WriteString("\n")
}

// writeBound writes how much faster the bound is than the server that the broker is compared with. This shows how far a target can
// be exceeded. If a target compares with the bound itself, the row shows the bound of gRPC.
func (r *results) writeBound(d *strings.Builder, t *target, load string) {
	var found []string
	measured, bound := false, multiplexed
	if t.against == multiplexed {
		bound = streamed
	}
	for _, callers := range r.options.callers {
		cell := ""
		if t.callers == nil || slices.Contains(t.callers, callers) {
			if s, ok := t.ratio(r.cell(load, bound, callers), r.cell(load, t.against, callers)); ok {
				cell, measured = s.String(), true
			}
		}
		found = append(found, cell)
	}
	if measured && !strings.HasPrefix(t.against, earlier) {
		fmt.Fprintf(d, "| | | %s | | %s |\n", waysAbout[bound], strings.Join(dashed(found...), " | "))
	}
}

func aboutLoad(name string) string { return loadsAbout[slices.Index(loadNames(), name)].about }

func (r *results) writeLoad(d *strings.Builder, name, about string) {
	var rows []row
	for _, c := range r.cells {
		if c.load == name {
			rows = append(rows, r.rowOf(c))
		}
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(d, "### %s\n\n| callers | | p50 | p99 | calls/s | of the bound | of the bare server | of that in process | CPU a call | allocations | resident | errors |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
		strings.ToUpper(about[:1])+about[1:])
	for _, w := range rows {
		fmt.Fprintf(d, "| %d | %s | %s | %d |\n", w.Callers, w.Way,
			strings.Join(dashed(w.P50, w.P99, w.PerSecond, w.OfBound, w.OfFloor, w.OfInside, w.CPU, w.Allocs, w.Memory), " | "), w.Errors)
	}
	d.WriteString("\n")
}

// dashed replaces an empty text by a dash.
func dashed(cells ...string) []string {
	for i := range cells {
		if cells[i] == "" {
			cells[i] = "–"
		}
	}
	return cells
}

func microseconds(d time.Duration) string {
	us := float64(d.Nanoseconds()) / 1e3
	switch {
	case us >= 100e3:
		return fmt.Sprintf("%.0f ms", us/1e3)
	case us >= 1e3:
		return fmt.Sprintf("%.2f ms", us/1e3)
	case us >= 100:
		return fmt.Sprintf("%.0f µs", us)
	}
	return fmt.Sprintf("%.1f µs", us)
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1e3)
}
