// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"container/list"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
)

// DefaultBuckets is the maximum number of callers, and of tenants, that are remembered unless the
// configuration says otherwise.
const DefaultBuckets = 16384

// Rate is the number of calls that are accepted: PerSecond in the long run, and Burst at once
// after a pause.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Config has the limits of callers and tenants. A [Rate] of 0 sets no limit.
type Config struct {
	// Caller is the rate of each caller: of each subject of an issuer.
	Caller Rate
	// Tenant is the rate of each tenant, which all of its callers share.
	Tenant Rate
	// TenantClaim is the claim of tokens that names the tenant. Tenants of different issuers are different. Callers of an
	// issuer whose tokens lack the claim, or have one that is no text, are one tenant.
	TenantClaim string
	// Buckets is the maximum number of callers, and of tenants, that are remembered:
	// [DefaultBuckets] if it is 0.
	Buckets int
	// Now returns the time, [time.Now] if it is nil.
	Now func() time.Time
}

// Refused is why a call is refused. Its text may be sent to the caller. It is RESOURCE_EXHAUSTED in gRPC, and 429 in HTTP.
type Refused struct {
	text string
	// RetryAfter is the time after which another attempt makes sense. It is more than 0.
	RetryAfter time.Duration
}

func (r *Refused) Error() string { return r.text }

// Seconds returns the value of the header Retry-After: whole seconds, rounded up (RFC 9110, section 10.2.3).
func (r *Refused) Seconds() string { return fmt.Sprint(int64(math.Ceil(r.RetryAfter.Seconds()))) }

// Rates has the rates of callers and tenants. It is safe for concurrent use.
type Rates struct {
	claim   string
	now     func() time.Time
	mu      sync.Mutex
	callers *buckets
	tenants *buckets
}

// NewRates returns the rates of a configuration.
func NewRates(config Config) (*Rates, error) {
	if config.Buckets == 0 {
		config.Buckets = DefaultBuckets
	}
	if config.Buckets < 1 {
		return nil, fmt.Errorf("found %d buckets, expected at least 1", config.Buckets)
	}
	if (config.TenantClaim == "") != (config.Tenant == Rate{}) {
		return nil, errors.New("found a rate of tenants or the claim that names them, expected both or neither")
	}
	for name, limit := range map[string]Rate{"callers": config.Caller, "tenants": config.Tenant} {
		if limit != (Rate{}) && (!(limit.PerSecond > 0) || limit.Burst < 1 || math.IsInf(limit.PerSecond, 0)) {
			return nil, fmt.Errorf("the rate of %s is %g a second with a burst of %d, expected more than 0 and at least 1", name, limit.PerSecond, limit.Burst)
		}
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Rates{
		claim: config.TenantClaim, now: config.Now,
		callers: newBuckets(config.Caller, config.Buckets), tenants: newBuckets(config.Tenant, config.Buckets),
	}, nil
}

// Admit counts a call. Its error is a [*Refused] if the caller or its tenant has used up its rate; then the call counts for
// neither.
func (r *Rates) Admit(who caller.Caller) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	giveBack, wait := r.callers.take(name{who.Issuer, who.Subject}, now)
	if wait > 0 {
		return &Refused{"the caller makes more calls than it may", wait}
	}
	tenant, _ := who.Claims[r.claim].(string)
	if _, wait := r.tenants.take(name{who.Issuer, tenant}, now); wait > 0 {
		giveBack()
		return &Refused{"the callers of the tenant together make more calls than they may", wait}
	}
	return nil
}

// name is an issuer and what it names.
type name struct{ issuer, within string }

// buckets has a token bucket for each name, up to a number of them. If there is no room for
// another bucket, the least recently used one is dropped if it is full, because a full bucket
// equals a new one. Otherwise all names without a bucket share one bucket. So no caller gets a
// new burst by displacing the buckets of others.
type buckets struct {
	rate   Rate
	limit  int
	known  map[name]*list.Element
	order  *list.List // of *bucket, the one used last in front
	shared *rate.Limiter
}

type bucket struct {
	name    name
	limiter *rate.Limiter
}

func newBuckets(limit Rate, size int) *buckets {
	b := &buckets{rate: limit, limit: size, known: map[name]*list.Element{}, order: list.New()}
	b.shared = b.newLimiter()
	return b
}

func (b *buckets) newLimiter() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(b.rate.PerSecond), b.rate.Burst)
}

// take takes a call from a bucket, and returns a function that gives the call back. If the bucket is empty, take returns the time
// until it has a call again.
func (b *buckets) take(of name, now time.Time) (giveBack func(), wait time.Duration) {
	if b.rate == (Rate{}) {
		return func() {}, 0
	}
	reservation := b.find(of, now).ReserveN(now, 1)
	if wait := reservation.DelayFrom(now); wait > 0 {
		reservation.CancelAt(now)
		return nil, wait
	}
	return func() { reservation.CancelAt(now) }, 0
}

func (b *buckets) find(of name, now time.Time) *rate.Limiter {
	if found, ok := b.known[of]; ok {
		b.order.MoveToFront(found)
		return found.Value.(*bucket).limiter
	}
	if len(b.known) >= b.limit {
		oldest := b.order.Back()
		if oldest.Value.(*bucket).limiter.TokensAt(now) < float64(b.rate.Burst) {
			return b.shared
		}
		delete(b.known, b.order.Remove(oldest).(*bucket).name)
	}
	fresh := &bucket{of, b.newLimiter()}
	b.known[of] = b.order.PushFront(fresh)
	return fresh.limiter
}
