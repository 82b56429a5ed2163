// SPDX-License-Identifier: Apache-2.0

package sessionbench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of a measurement.
const (
	MaxConnections = 1000
	MaxRequests    = 1_000_000
	MaxDuration    = 10 * time.Minute
	MaxSize        = 512 << 10
)

// Measurements are the names of what can be measured.
var Measurements = []string{"init", "request", "both"}

// Config says what to measure.
type Config struct {
	Target Target
	// Version is the version of the protocol, 1 or 2.
	Version int
	// Connections work at the same time.
	Connections int
	// Requests is the number of operations of each connection, if Duration is 0.
	Requests int
	// Duration is how long each measurement takes.
	Duration time.Duration
	// Size is the size of the plaintext of a request in bytes, and Path its path.
	Size int
	Path string
	// Measure has names of Measurements.
	Measure []string
	// Progress is called before each measurement. It may be nil.
	Progress func(what string)
}

// Target is the target of a measurement: an [HTTP] server or the [Socket] of a broker.
type Target interface {
	// phases are the names of the measured steps while the client waits for a server.
	phases() (toBegin, toSend []string)
	connect(ctx context.Context) (server, error)
}

// server is one connection to a target. begin and send set the laps of their phases, from 1 on.
type server interface {
	begin(ctx context.Context, r *initRequest, t *stopwatch) (*initReply, error)
	send(ctx context.Context, m *message, t *stopwatch) (*message, error)
	// end ends a session, if the protocol has that.
	end(ctx context.Context, id string) error
	close()
}

// stopwatch measures the phases of an operation.
type stopwatch struct {
	last  time.Time
	times []time.Duration
	from  int // number of the first phase
}

// lap records the time of a phase, which began at the end of the phase before.
func (s *stopwatch) lap(phase int) {
	now := time.Now()
	s.times[s.from+phase] = now.Sub(s.last)
	s.last = now
}

// Row is the result for one phase of a measurement, or for all of them together.
type Row struct {
	// Measurement is one of Measurements, and Phase the name of a phase, or "total".
	Measurement, Phase string
	Connections        int
	// Done is the number of operations that succeeded. The times are of these alone.
	Done int
	// PerSecond is the number of operations that succeeded in a second. It is 0 for single
	// phases.
	PerSecond                float64
	Mean, P50, P95, P99, Max time.Duration
	// Failed is the number of operations that failed, and First is the error of one of them,
	// empty for single phases.
	Failed int
	First  string
}

// Total is the name of all phases together.
const Total = "total"

// Measure makes all measurements. First it begins a session and sends a request. If that fails,
// nothing can be measured, and Measure returns an error. The rows count later failures.
func Measure(ctx context.Context, config Config) ([]Row, error) {
	if config.Progress == nil {
		config.Progress = func(string) {}
	}
	var rows []Row
	first, err := newWorker(ctx, &config)
	if err != nil {
		return nil, err
	}
	defer closeAll(ctx, []*worker{first})
	config.Progress("trying a session and a request")
	if err := first.try(ctx); err != nil {
		return nil, err
	}
	for _, what := range config.Measure {
		many := fmt.Sprintf("%d each", config.Requests)
		if config.Duration > 0 {
			many = config.Duration.String()
		}
		config.Progress(fmt.Sprintf("%s: %d connections, %s", what, config.Connections, many))
		measured, err := measure(ctx, &config, what)
		if err != nil {
			return rows, err
		}
		rows = append(rows, measured...)
	}
	return rows, nil
}

// worker makes operations on a connection, one after the other.
type worker struct {
	config   *Config
	server   server
	clientID string
	peer     *peer // of the last session, nil before the first one
	body     []byte

	watch  stopwatch
	times  [][]time.Duration // of each phase, and at last of all together
	spent  time.Duration     // in operations
	failed int
	first  error
}

func newWorker(ctx context.Context, config *Config) (*worker, error) {
	server, err := config.Target.connect(ctx)
	if err != nil {
		return nil, err
	}
	w := &worker{config: config, server: server}
	if config.Version == 2 {
		w.clientID = "bench"
	}
	const around = len(`{"data":""}`)
	w.body = []byte(`{"data":"` + strings.Repeat("x", max(0, config.Size-around)) + `"}`)
	return w, nil
}

// namesOf returns the names of the phases of a measurement.
func namesOf(target Target, what string) []string {
	toBegin, toSend := target.phases()
	begin := slices.Concat([]string{"generate key"}, toBegin, []string{"derive"})
	send := slices.Concat([]string{"seal"}, toSend, []string{"open"})
	switch what {
	case "init":
		return begin
	case "request":
		return send
	default:
		return slices.Concat(begin, send)
	}
}

// try does everything once.
func (w *worker) try(ctx context.Context) error {
	if err := w.prepare(ctx, "both"); err != nil {
		return err
	}
	if err := w.do(ctx, "both"); err != nil {
		return err
	}
	return w.end(ctx)
}

// do makes one operation, and measures its phases.
func (w *worker) do(ctx context.Context, what string) error {
	w.watch.last, w.watch.from = time.Now(), 0
	if what != "request" {
		if err := w.begin(ctx); err != nil {
			return err
		}
		w.watch.from = len(namesOf(w.config.Target, "init"))
	}
	if what == "init" {
		return nil
	}
	return w.send(ctx)
}

func (w *worker) begin(ctx context.Context) error {
	own, request, err := newInit(w.clientID)
	if err != nil {
		return err
	}
	w.watch.lap(0)
	reply, err := w.server.begin(ctx, request, &w.watch)
	if err != nil {
		return err
	}
	if w.peer, err = derive(own, w.clientID, reply); err != nil {
		return err
	}
	toBegin, _ := w.config.Target.phases()
	w.watch.lap(len(toBegin) + 1)
	return nil
}

func (w *worker) send(ctx context.Context) error {
	request := w.peer.seal(w.config.Path, w.body)
	w.watch.lap(0)
	reply, err := w.server.send(ctx, request, &w.watch)
	if err != nil {
		return err
	}
	if _, err := w.peer.open(w.config.Path, reply); err != nil {
		return err
	}
	_, toSend := w.config.Target.phases()
	w.watch.lap(len(toSend) + 1)
	return nil
}

// end ends the last session, if there is one.
func (w *worker) end(ctx context.Context) error {
	if w.peer == nil {
		return nil
	}
	if err := w.server.end(ctx, w.peer.id); err != nil {
		return err
	}
	w.peer = nil
	return nil
}

// prepare makes the connection and begins the session of the requests. Its time does not count.
func (w *worker) prepare(ctx context.Context, what string) error {
	w.watch.times, w.times = make([]time.Duration, len(namesOf(w.config.Target, "both"))), make([][]time.Duration, len(namesOf(w.config.Target, what))+1)
	w.watch.last = time.Now()
	if err := w.begin(ctx); err != nil || what == "request" {
		return err
	}
	return w.end(ctx)
}

// run makes operations until there are enough.
func (w *worker) run(ctx context.Context, what string) {
	until := time.Now().Add(w.config.Duration)
	for i := 0; ctx.Err() == nil; i++ {
		if w.config.Duration > 0 && !time.Now().Before(until) || w.config.Duration == 0 && i >= w.config.Requests {
			return
		}
		began := time.Now()
		err := w.do(ctx, what)
		took := time.Since(began)
		w.spent += took
		if err == nil {
			phases := len(w.times) - 1
			for phase := range phases {
				w.times[phase] = append(w.times[phase], w.watch.times[phase])
			}
			w.times[phases] = append(w.times[phases], took)
		}
		if what != "request" {
			err = cmp.Or(err, w.end(ctx)) // also of a session whose request has failed
		}
		if err != nil && ctx.Err() == nil {
			w.failed++
			w.first = err
		}
	}
}

// measure lets all connections work, and returns a row for each phase.
func measure(ctx context.Context, config *Config, what string) ([]Row, error) {
	var workers []*worker
	defer func() { closeAll(ctx, workers) }()
	for i := range config.Connections {
		w, err := newWorker(ctx, config)
		if err != nil {
			return nil, err
		}
		workers = append(workers, w)
		if err := w.prepare(ctx, what); err != nil {
			return nil, fmt.Errorf("connection %d of %d: %w", i+1, config.Connections, err)
		}
	}
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() { w.run(ctx, what) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, w := range workers {
		if err := w.end(ctx); err != nil {
			return nil, err
		}
	}
	return rowsOf(config, what, workers), nil
}

// endTime is how long the sessions may take to end that are left after an error or an interrupt.
const endTime = 5 * time.Second

// closeAll ends the sessions that are left, even after ctx has ended, and closes the connections.
// Otherwise the sessions would take room in the broker until their lifetime ends.
func closeAll(ctx context.Context, workers []*worker) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	for _, w := range workers {
		_ = w.end(ctx) // the error to report is the first one
		w.server.close()
	}
}

func rowsOf(config *Config, what string, workers []*worker) []Row {
	names := append(namesOf(config.Target, what), Total)
	rows := make([]Row, len(names))
	for phase, name := range names {
		row := Row{Measurement: what, Phase: name, Connections: config.Connections}
		var sorted []time.Duration
		for _, w := range workers {
			sorted = append(sorted, w.times[phase]...)
		}
		slices.Sort(sorted)
		row.Done = len(sorted)
		if row.Done > 0 {
			var sum time.Duration
			for _, t := range sorted {
				sum += t
			}
			row.Mean, row.Max = sum/time.Duration(row.Done), sorted[row.Done-1]
			row.P50, row.P95, row.P99 = percentile(sorted, 50), percentile(sorted, 95), percentile(sorted, 99)
		}
		if name == Total {
			row.sum(workers)
		}
		rows[phase] = row
	}
	return rows
}

// percentile returns the smallest time that the given percentage of times does not exceed.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[(len(sorted)*p+99)/100-1]
}

// sum adds up the operations of all workers over all phases. The time of a worker counts while it
// is in an operation, not while it ends the session afterwards.
func (r *Row) sum(workers []*worker) {
	for _, w := range workers {
		if w.spent > 0 {
			r.PerSecond += float64(len(w.times[len(w.times)-1])) / w.spent.Seconds()
		}
		r.Failed += w.failed
		if w.first != nil {
			r.First = w.first.Error()
		}
	}
}
