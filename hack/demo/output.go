// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// output writes the demo's output: with bold headings on a terminal, plain into a file.
type output struct {
	io.Writer
	started      time.Time
	bold, normal string
}

func newOutput(writer io.Writer) *output {
	o := &output{Writer: writer, started: time.Now()}
	if file, ok := writer.(*os.File); ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			o.bold, o.normal = "\033[1m", "\033[0m"
		}
	}
	return o
}

// step writes a heading for what comes next.
func (o *output) step(format string, arguments ...any) {
	fmt.Fprintf(o, "\n%s[%5.1f s] %s%s\n", o.bold, time.Since(o.started).Seconds(), fmt.Sprintf(format, arguments...), o.normal)
}

// line writes one indented line.
func (o *output) line(format string, arguments ...any) {
	fmt.Fprintln(o, strings.TrimRight("  "+fmt.Sprintf(format, arguments...), " "))
}

// event is one row of the table: what happened, when, and how long after another event.
type event struct {
	what  string
	at    time.Time
	after time.Time // of the other event; zero for none
	of    string
	note  string
}

// table writes the events.
func (o *output) table(events []event) {
	fmt.Fprintf(o, "\n  %s%-44s %-14s %s%s\n", o.bold, "what", "when", "how long after", o.normal)
	for _, each := range events {
		took := ""
		if !each.after.IsZero() {
			took = fmt.Sprintf("%6.2f s after %s", each.at.Sub(each.after).Seconds(), each.of)
		}
		if each.note != "" {
			took += "  (" + each.note + ")"
		}
		o.line("%-44s %-14s %s", each.what, each.at.Local().Format("15:04:05.000"), took)
	}
}
