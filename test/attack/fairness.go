// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/controlgroup"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// fairTarget is the highest allowed ratio of the other caller's p99 during an attack to its
// p99 during the ordinary load.
const fairTarget = 3

// comparison has the results of the rounds of an attack.
type comparison struct {
	attack           attack
	ratios           []float64
	ordinary, during []time.Duration // p99
	failures         []string        // of each round that did not pass
	// elsewhere has the ratios during the same attack on another broker. The program measures them if the target is missed.
	elsewhere []float64
}

// fairness measures each attack once a round. It compares the attack with the ordinary load
// on the same broker right before it, because the machine's other work changes from one
// minute to the next.
//
// The broker, the attacker and the other caller each have a control group with an equal
// share of the processors, as the kubelet does for each container. Without the groups, the
// attacker's thousands of connections would delay the other caller, whatever they attack.
func fairness(ctx context.Context, o options, p *programs) (err error) {
	p.controllers = append(p.controllers, controlgroup.CPU)
	own, err := controlgroup.New(controlgroup.CPU)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Leave(), own.Remove()) }()
	if p.apart, err = controlgroup.New(controlgroup.CPU); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.apart.Remove()) }()
	if err := own.Join(); err != nil {
		return err
	}
	var all []*comparison
	for _, a := range o.attacks {
		all = append(all, &comparison{attack: a})
	}
	err = inRounds(ctx, o, "", all, func(c *comparison) error {
		r, err := try(ctx, o, p, c.attack)
		if err == nil {
			c.add(r)
		}
		return err
	})
	if err != nil {
		return err
	}
	missed := slices.DeleteFunc(slices.Clone(all), (*comparison).met)
	err = inRounds(ctx, o, "elsewhere, ", missed, func(c *comparison) error {
		r, err := tryElsewhere(ctx, o, p, c.attack)
		if ratio, measured := r.ratio(); err == nil && measured {
			c.elsewhere = append(c.elsewhere, ratio)
		}
		return err
	})
	if err != nil {
		return err
	}
	printFairness(all)
	return nil
}

// inRounds calls a function with each comparison once a round, in random order.
func inRounds(ctx context.Context, o options, where string, all []*comparison, do func(*comparison) error) error {
	order := slices.Clone(all)
	for round := range o.rounds {
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for i, c := range order {
			runner.Progress("%sround %d of %d, %d of %d: %s", where, round+1, o.rounds, i+1, len(order), c.attack.name)
			err := do(c)
			if ctx.Err() != nil {
				return errInterrupted // later errors are a result of the interrupt
			}
			if err != nil {
				return fmt.Errorf("%s: %w", c.attack.name, err)
			}
		}
	}
	return nil
}

func (c *comparison) add(r *result) {
	if r.verdict() != passed {
		c.failures = append(c.failures, fmt.Sprintf("%s, the attacker saw %s", r.verdict(), r.tally))
	}
	ratio, measured := r.ratio()
	if !measured {
		return
	}
	c.ordinary, c.during = append(c.ordinary, r.ordinary.P99), append(c.during, r.during.worst())
	c.ratios = append(c.ratios, ratio)
}

// worst returns the p99, or, if no call was answered, how long the present call has waited.
func (m measured) worst() time.Duration {
	if m.P99 == 0 {
		return m.Max
	}
	return m.P99
}

// ratio returns the other caller's p99 during the attack divided by its p99 during the
// ordinary load. It returns false if there was no ordinary load, or if the broker ended.
func (r *result) ratio() (ratio float64, measured bool) {
	if r == nil || r.ordinary.P99 == 0 || !r.lived {
		return 0, false
	}
	return float64(r.during.worst()) / float64(r.ordinary.P99), true
}

// met reports whether the median of the ratios is within the target.
func (c *comparison) met() bool {
	return len(c.ratios) > 0 && measurement.SpreadOf(c.ratios).Median <= fairTarget
}

func printFairness(all []*comparison) {
	const format = "%-34s %9s %9s %7s %15s %10s %s\n"
	fmt.Printf(`The p99 of b's small hashes in milliseconds, medians of all rounds; the ratio with its quartiles. The target is at most %d.
Where it is missed, "elsewhere" is the ratio while the same attack is made on another broker, which is the machine's share.
`, fairTarget)
	fmt.Printf(format, "attack", "ordinary", "during", "ratio", "quartiles", "elsewhere", "")
	missed := 0
	for _, c := range all {
		found, verdict, elsewhere := measurement.SpreadOf(c.ratios), "met", ""
		if !c.met() {
			verdict = "missed"
			missed++
		}
		if len(c.elsewhere) > 0 {
			elsewhere = fmt.Sprintf("%.2f", measurement.Median(c.elsewhere))
		}
		fmt.Printf(format, c.attack.name, milliseconds(measurement.Median(c.ordinary)), milliseconds(measurement.Median(c.during)),
			fmt.Sprintf("%.2f", found.Median), fmt.Sprintf("%.2f to %.2f", found.Low, found.High), elsewhere, verdict)
		for _, failure := range c.failures {
			fmt.Printf("    a round did not pass: %s\n", failure)
		}
	}
	fmt.Printf("%d of %d miss the target\n", missed, len(all))
}
