// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// fairTarget is the most that the other caller's p99 may be beside an attack, as a
// multiple of that beside the ordinary load.
const fairTarget = 3

// comparison is what the rounds of an attack have found.
type comparison struct {
	attack           attack
	ratios           []float64
	ordinary, during []time.Duration // p99
	failed           int             // rounds that did not pass
}

// fairness measures each attack once a round, in random order. Each is compared with the
// ordinary load of the same broker right before it, since what else the machine does
// changes from one minute to the next.
func fairness(ctx context.Context, o options, p *programs) error {
	var all []*comparison
	for _, a := range o.attacks {
		all = append(all, &comparison{attack: a})
	}
	order := slices.Clone(all)
	for round := range o.rounds {
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for i, c := range order {
			progress("round %d of %d, %d of %d: %s", round+1, o.rounds, i+1, len(order), c.attack.name)
			r, err := try(ctx, o, p, c.attack)
			if ctx.Err() != nil {
				return errInterrupted // and what else failed, failed by that
			}
			if err != nil {
				return fmt.Errorf("%s: %w", c.attack.name, err)
			}
			c.add(r)
		}
	}
	return printFairness(all)
}

func (c *comparison) add(r *result) {
	if r.verdict() != passed {
		c.failed++
	}
	if r.ordinary.P99 == 0 || !r.lived {
		return
	}
	// Where no call was answered, the one that waits is what there is.
	during := r.during.P99
	if during == 0 {
		during = r.during.Max
	}
	c.ordinary, c.during = append(c.ordinary, r.ordinary.P99), append(c.during, during)
	c.ratios = append(c.ratios, float64(during)/float64(r.ordinary.P99))
}

func printFairness(all []*comparison) error {
	const format = "%-34s %9s %9s %7s %15s %s\n"
	fmt.Printf("The p99 of b's small hashes in milliseconds, medians of all rounds; the ratio with its quartiles. The target is at most %d.\n", fairTarget)
	fmt.Printf(format, "attack", "ordinary", "during", "ratio", "quartiles", "")
	missed := 0
	for _, c := range all {
		found, verdict := spreadOf(c.ratios), "met"
		if len(c.ratios) == 0 || found.median > fairTarget {
			verdict = "missed"
			missed++
		}
		if c.failed > 0 {
			verdict += fmt.Sprintf(", %d rounds did not pass", c.failed)
		}
		fmt.Printf(format, c.attack.name, milliseconds(middle(c.ordinary)), milliseconds(middle(c.during)),
			fmt.Sprintf("%.2f", found.median), fmt.Sprintf("%.2f to %.2f", found.low, found.high), verdict)
	}
	fmt.Printf("%d of %d miss the target\n", missed, len(all))
	return nil
}

// spread is a median between the quartiles.
type spread struct{ low, median, high float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{sorted[n/4], middle(values), sorted[n-1-n/4]}
}

// middle is the median of values in any order, 0 of none.
func middle[T ~int64 | ~float64](values []T) T {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	lower, upper := sorted[(n-1)/2], sorted[n/2]
	return lower + (upper-lower)/2
}
