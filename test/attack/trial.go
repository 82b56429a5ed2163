// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// ordinaryCallers is the number of callers in the ordinary load of the caller a.
	ordinaryCallers = 16
	// againLimit is how long after an attack the caller a may wait until it is served again.
	againLimit = 5 * time.Second
	// leastShare is the longest average time between two answered calls of the other
	// caller. A caller with fewer calls counts as starved.
	leastShare = 500 * time.Millisecond
)

// The verdicts.
const (
	passed     = "pass"
	killed     = "KILLED"
	starved    = "STARVED"
	notAgain   = "NOT AGAIN"
	callsFail  = "CALLS FAIL"
	probesFail = "PROBES FAIL"
)

// result is the result of an attack.
type result struct {
	attack   attack
	ordinary measured // during the ordinary load
	during   measured // during the attack
	lived    bool
	exit     string // how the process ended, if it did
	kills    int
	peak     int64
	took     time.Duration
	tally    *tally
	// again is how long after the attack the caller a was served. served reports whether
	// it was.
	again  time.Duration
	served bool
	// probes are requests to the status port during the attack.
	probes, probesFailed int
	// stopsSlowly reports whether the broker did not end in time when it was asked to.
	stopsSlowly bool
	log         []string
}

// try makes one attack on a new broker.
func try(ctx context.Context, o options, p *programs, a attack) (_ *result, err error) {
	b, err := startBroker(ctx, o, p)
	if err != nil {
		return nil, err
	}
	r := &result{attack: a, tally: newTally()}
	defer func() {
		slow, stopped := b.stop()
		r.stopsSlowly, err = slow, errors.Join(err, stopped)
	}()
	return r, r.measure(ctx, o, p, b, b)
}

// tryElsewhere attacks one broker and measures another one. So the result shows the effect
// of the attack on the machine, without its effect on the broker.
func tryElsewhere(ctx context.Context, o options, p *programs, a attack) (_ *result, err error) {
	attacked, err := startBroker(ctx, o, p)
	if err != nil {
		return nil, err
	}
	defer func() {
		_, stopped := attacked.stop()
		err = errors.Join(err, stopped)
	}()
	b, err := startBroker(ctx, o, p)
	if err != nil {
		return nil, err
	}
	defer func() {
		_, stopped := b.stop()
		err = errors.Join(err, stopped)
	}()
	r := &result{attack: a, tally: newTally()}
	return r, r.measure(ctx, o, p, b, attacked)
}

// measure measures the other caller of a broker during the ordinary load on that broker,
// and during the attack on a broker.
func (r *result) measure(ctx context.Context, o options, p *programs, b, attacked *broker) (err error) {
	other, err := startObserver(ctx, b.socket("b"), p.apart)
	if err != nil {
		return err
	}
	defer func() {
		if stopped := other.stop(); ctx.Err() == nil {
			err = errors.Join(err, stopped)
		}
	}()
	if err := await(ctx, b.socket("a")); err != nil {
		return fmt.Errorf("the broker does not serve: %w", err)
	}
	if o.ordinary > 0 {
		if _, err := other.takeMeasured(); err != nil {
			return err
		}
		if err := ordinaryLoad(ctx, b.socket("a"), o.ordinary); err != nil {
			return err
		}
		if r.ordinary, err = other.takeMeasured(); err != nil {
			return err
		}
	}
	if err := r.attackOnce(ctx, o, attacked, other); err != nil {
		return err
	}
	return r.look(ctx, o, attacked)
}

// attackOnce attacks, while the other caller makes calls and a prober asks the status port.
func (r *result) attackOnce(ctx context.Context, o options, b *broker, other *observer) error {
	if _, err := other.takeMeasured(); err != nil {
		return err
	}
	began := time.Now()
	// Calls do not have the deadline of the attack, because gRPC would send it to the broker.
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-b.exited: // there is nothing left to attack
		case <-time.After(max(o.time, r.attack.least)):
		case <-limited.Done():
		}
	}()
	asking, stop := context.WithCancel(ctx)
	var probing sync.WaitGroup
	probing.Go(func() { r.probe(asking, b.status) })
	err := r.attack.run(limited, &target{socket: b.socket("a"), status: b.status, tally: r.tally})
	r.took = time.Since(began)
	var asked error
	r.during, asked = other.takeMeasured()
	stop()
	probing.Wait()
	if err != nil && limited.Err() == nil {
		return errors.Join(fmt.Errorf("the attack could not be made: %w", err), asked)
	}
	return asked
}

// prober is the address from which probes come. A kubelet has another address than the
// containers of a pod, and the broker divides connections by address.
var prober = net.IPv4(127, 0, 0, 2)

// probe asks the status port as a kubelet does, but more often.
func (r *result) probe(ctx context.Context, address string) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: prober}}
	client := http.Client{Timeout: callLimit, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext}}
	tick := time.NewTicker(freshInterval)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
		if err == nil {
			var answer *http.Response
			if answer, err = client.Do(request); err == nil {
				err = answer.Body.Close()
			}
		}
		if ctx.Err() != nil {
			return
		}
		r.probes++
		if err != nil {
			r.probesFailed++
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look records the state of the broker after the attack.
func (r *result) look(ctx context.Context, o options, b *broker) (err error) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, againLimit)
	defer cancel()
	r.served = b.isRunning() && await(limited, b.socket("a")) == nil
	r.again = time.Since(began)
	if r.peak, err = b.Peak(); err != nil {
		return err
	}
	if r.kills, err = b.Kills(); err != nil {
		return err
	}
	if r.kills > 0 {
		select { // the process is about to end
		case <-b.exited:
		case <-time.After(time.Second):
		}
	}
	if r.lived = b.isRunning(); !r.lived {
		r.exit = b.cmd.ProcessState.String()
	}
	r.log = b.lines()
	if o.verbose {
		fmt.Fprintln(os.Stderr, strings.Join(r.log, "\n"))
	}
	return nil
}

// await makes calls on new connections until one is answered.
func await(ctx context.Context, socket string) error {
	for {
		conn, err := dial(socket)
		if err == nil {
			err = errors.Join(smallHash(ctx, conn), conn.Close())
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ordinaryLoad makes the calls of callers that do not attack: small hashes, one after
// another.
func ordinaryLoad(ctx context.Context, socket string, duration time.Duration) error {
	conn, err := dial(socket)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(duration)
	failures := make(chan error, ordinaryCallers)
	var all sync.WaitGroup
	for range ordinaryCallers {
		all.Go(func() {
			for time.Now().Before(deadline) && ctx.Err() == nil {
				if err := smallHash(ctx, conn); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failures)
	return errors.Join(<-failures, conn.Close())
}

// slow reports whether the other caller got too little during the attack.
func (r *result) slow() bool {
	return r.during.Errors > 0 || r.during.FreshErrors > 0 || r.during.Max > callLimit ||
		time.Duration(r.during.Calls)*leastShare < r.took
}

// verdict returns the worst verdict that applies.
func (r *result) verdict() string {
	switch {
	case !r.lived || r.kills > 0:
		return killed
	case r.slow():
		return starved
	case !r.served:
		return notAgain
	case r.attack.polite && r.tally.failures() > 0:
		return callsFail
	case r.probesFailed > 0:
		return probesFail
	}
	return passed
}
