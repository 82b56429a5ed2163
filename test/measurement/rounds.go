// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"flag"
	"fmt"
	"strconv"
	"time"
)

// Rounds are the settings of a program that measures everything several times.
type Rounds struct {
	Report   string
	Rounds   int
	Duration time.Duration
}

// Flags adds the flags for the settings, whose defaults are the rounds and the duration of r.
func (r *Rounds) Flags(set *flag.FlagSet) {
	set.StringVar(&r.Report, "report", "", "Markdown `file` to write; standard output if empty")
	set.IntVar(&r.Rounds, "rounds", r.Rounds, "how `often` everything is measured")
	set.DurationVar(&r.Duration, "duration", r.Duration, "how `long` each measurement takes, 1m at most")
}

// Check returns an error if the command line cannot be used.
func (r *Rounds) Check(set *flag.FlagSet) error {
	switch {
	case set.NArg() > 0:
		return fmt.Errorf("found the argument %q, expected flags only", set.Arg(0))
	case r.Rounds < 1:
		return fmt.Errorf("found --rounds %d, expected 1 or more", r.Rounds)
	case r.Duration < 100*time.Millisecond || r.Duration > time.Minute:
		return fmt.Errorf("found --duration %s, expected 100ms to 1m", r.Duration)
	}
	return nil
}

// busy is more than the load average that such a measurement causes by itself.
const busy = 6

// Conditions returns the paragraphs with the command that measured, the machine and its load.
func (r *Rounds) Conditions(command string, began time.Time, took time.Duration) string {
	load := Load()
	text := fmt.Sprintf("`%s`, %d rounds with %s for each measurement, %s, load %s at the end, %s UTC, %s in all.\n\n", command, r.Rounds,
		r.Duration, Machine(), load, began.UTC().Format("2 January 2006 15:04"), took.Round(time.Second))
	if average, err := strconv.ParseFloat(load, 64); err == nil && average > busy {
		text += fmt.Sprintf("Other programs used the processors meanwhile: this measurement alone makes a load of %d at most. So the figures vary from round to round, "+
			"and a rate says less than processor time.\n\n", busy)
	}
	return text
}
