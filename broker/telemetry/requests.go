// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// unknownProfile is the label of requests that name no served profile. Other names from clients
// never become labels.
const unknownProfile = "unknown"

// numCodes is the number of gRPC status codes.
const numCodes = int(codes.Unauthenticated) + 1

// Counters counts the requests for one profile.
type Counters struct {
	byCode [profile.OperationCount][numCodes]atomic.Uint64

	// all is nil for requests that name no served profile.
	all *requests
	// since is when the counters were made.
	since time.Time
	// uses counts served calls by their use, and otherUses counts the calls for which all has no
	// room. dropped reports whether the profile has left the set. all.mu guards changes of uses,
	// and dropped.
	uses      atomic.Pointer[map[profile.Use]*useCount]
	otherUses [profile.OperationCount]atomic.Uint64
	dropped   bool
}

// Add counts one finished request.
func (c *Counters) Add(op profile.Operation, code codes.Code) {
	if int(code) >= numCodes {
		code = codes.Unknown
	}
	c.byCode[op][code].Add(1)
}

// requests collects the counters of all profiles as
// crypto_broker_requests_total.
type requests struct {
	desc *prometheus.Desc

	mu      sync.Mutex // guards current; only a request with a new use locks it
	current map[string]*Counters
	unknown Counters
	// uses is the number of uses of the counters of current. mu guards its changes.
	uses atomic.Int64
	// rollouts are the profiles that are rolled out, in the order of the file.
	rollouts []rollout
}

// rollout has the side of the broker in the rollout of a profile, and the counters of the profile
// when the broker came to that side.
type rollout struct {
	profile.Side
	counters      *Counters // nil while the profile is out of service
	calls, failed uint64
}

// RolloutCalls are the calls of a profile since the broker came to its side of the rollout.
type RolloutCalls struct {
	profile.Side
	// Calls is the number of calls that ended. Failed is the number of calls that ended with
	// another code than OK, without the calls that the client cancelled.
	Calls, Failed uint64
}

// totals returns the numbers of RolloutCalls since the counters were made.
func (c *Counters) totals() (calls, failed uint64) {
	for op := range c.byCode {
		for code := range c.byCode[op] {
			n := c.byCode[op][code].Load()
			calls += n
			if code != int(codes.OK) && code != int(codes.Canceled) {
				failed += n
			}
		}
	}
	return calls, failed
}

func newRequests() *requests {
	return &requests{
		desc: prometheus.NewDesc("crypto_broker_requests_total",
			"Finished requests by operation, profile of the set that is served, and gRPC status code.",
			[]string{"operation", "profile", "code"}, nil),
		current: map[string]*Counters{},
	}
}

// use returns the counters of the profiles of a set. Counters of profiles of the set before
// continue. Counters of all other profiles are dropped, so the number of labels stays bounded.
func (r *requests) use(set *profile.Set) map[string]*Counters {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, uses := time.Now(), 0
	next := make(map[string]*Counters, set.Len())
	for _, name := range set.Names() {
		counters := r.current[name]
		if counters == nil {
			counters = &Counters{all: r, since: now}
		}
		if known := counters.uses.Load(); known != nil {
			uses += len(*known)
		}
		next[name] = counters
	}
	for name, counters := range r.current {
		counters.dropped = next[name] == nil
	}
	r.current = next
	r.uses.Store(int64(uses))
	r.follow(set.Rollouts())
	return next
}

// follow records the counters of each profile whose side has changed. The caller has locked r.mu.
func (r *requests) follow(sides []profile.Side) {
	before := r.rollouts
	r.rollouts = nil
	for _, side := range sides {
		now := rollout{Side: side, counters: r.current[side.Profile]}
		// A profile that was out of service meanwhile has new counters.
		if i := slices.IndexFunc(before, func(b rollout) bool { return b.Side == side && b.counters == now.counters }); i >= 0 {
			now = before[i]
		} else if now.counters != nil {
			now.calls, now.failed = now.counters.totals()
		}
		r.rollouts = append(r.rollouts, now)
	}
}

// rolledOut returns the calls of each profile that is rolled out.
func (r *requests) rolledOut() []RolloutCalls {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []RolloutCalls
	for _, since := range r.rollouts {
		if since.counters != nil {
			calls, failed := since.counters.totals()
			all = append(all, RolloutCalls{since.Side, calls - since.calls, failed - since.failed})
		}
	}
	return all
}

// Describe implements prometheus.Collector.
func (r *requests) Describe(ch chan<- *prometheus.Desc) { ch <- r.desc }

// Collect implements prometheus.Collector. The code OK is always present, so a rate over it is
// never empty. Other codes are present after they have occurred.
func (r *requests) Collect(ch chan<- prometheus.Metric) {
	r.mu.Lock()
	current := r.current
	r.mu.Unlock()
	for name, counters := range current {
		if name == unknownProfile {
			continue // collected below, with the requests that name no served profile
		}
		r.collect(ch, name, true, counters)
	}
	if same := current[unknownProfile]; same != nil {
		r.collect(ch, unknownProfile, true, same, &r.unknown)
	} else {
		r.collect(ch, unknownProfile, false, &r.unknown)
	}
}

func (r *requests) collect(ch chan<- prometheus.Metric, name string, withOK bool, sources ...*Counters) {
	for op := range profile.OperationCount {
		for code := range numCodes {
			var n uint64
			for _, source := range sources {
				n += source.byCode[op][code].Load()
			}
			if n > 0 || (withOK && code == int(codes.OK)) {
				ch <- prometheus.MustNewConstMetric(r.desc, prometheus.CounterValue, float64(n),
					profile.Operation(op).String(), name, codes.Code(code).String())
			}
		}
	}
}
