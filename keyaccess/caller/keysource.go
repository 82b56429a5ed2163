// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// How often an issuer is asked at most, whatever tokens arrive.
const (
	// fetchFloor is the time from one successful request for keys to the next.
	fetchFloor = 30 * time.Second
	// fetchRetry is the time from a failed request to the next.
	fetchRetry = 5 * time.Second
)

// maxWaiting is the maximum number of calls of strangers that wait for keys of an issuer. Anybody can send a token with a key id that no issuer
// has, or of an issuer that is away. Without a bound, such tokens would take all places of a service for as long as an issuer does
// not answer, also the places of the callers of other issuers. It is half of the usual places, because all first requests of a
// peer after a start wait for its keys.
const maxWaiting = 32

// keySource has the keys of an issuer. Use of the keys makes it fetch newer ones in the background, so that no call waits for them;
// a service without calls makes no requests.
type keySource struct {
	Issuer
	// discovery is the path of the document that says where the keys are.
	discovery string
	client    *http.Client
	now       func() time.Time
	log       *slog.Logger

	// hits and misses count uses of keys, and fetches and failures what refresh has done.
	hits, misses, fetches, failures atomic.Uint64

	ctx    context.Context
	cancel context.CancelFunc
	flying sync.WaitGroup
	// waiting has an element for each call of a stranger that waits for keys.
	waiting chan struct{}

	mu sync.Mutex
	// keys are the keys of the last successful request, which was made at the time fetched.
	keys    []publicKey
	fetched time.Time
	// notBefore is when the next request may begin.
	notBefore time.Time
	// flight is closed when the request that is under way ends. It is nil if there is none.
	flight chan struct{}
	// failed says that the last request for keys has failed.
	failed bool
}

func newKeySource(settings Issuer, now func() time.Time, log *slog.Logger) (*keySource, error) {
	client, err := newClient(settings)
	if err != nil {
		return nil, err
	}
	i := &keySource{Issuer: settings, discovery: discoveryPath, client: client, now: now, log: log.With("issuer", settings.URL), waiting: make(chan struct{}, maxWaiting)}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	return i, nil
}

func (i *keySource) close() {
	i.cancel()
	i.flying.Wait()
	i.client.CloseIdleConnections()
}

// key returns the key that a token names. A token without a key id is accepted if exactly one key fits its algorithm. asked says that
// this service has asked for what the key has signed, so that strangers cannot make such calls.
func (i *keySource) key(ctx context.Context, id, algorithm string, asked bool) (publicKey, *Error) {
	find := func(keys []publicKey) []publicKey {
		var found []publicKey
		for _, key := range keys {
			// Some issuers publish a key several times: with several ids, or once for each algorithm without saying which.
			again := slices.ContainsFunc(found, func(other publicKey) bool { return other.thumbprint == key.thumbprint })
			if (id == "" || key.id == id) && key.fits(algorithm) && !again {
				found = append(found, key)
			}
		}
		return found
	}
	keys, refused := i.until(ctx, asked, func(keys []publicKey) bool { return len(find(keys)) > 0 })
	if refused != nil {
		return publicKey{}, refused
	}
	switch found := find(keys); {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && i.hasFailed():
		return publicKey{}, unavailable("the issuer does not give newer keys at this time, and the token may be signed with one of them")
	case len(found) == 0:
		return publicKey{}, invalidToken("the token is signed with a key that its issuer does not publish")
	}
	return publicKey{}, invalidToken("the token fits more than one key of its issuer")
}

// current returns the keys of the issuer.
func (i *keySource) current(ctx context.Context) ([]publicKey, error) {
	keys, refused := i.until(ctx, true, func(keys []publicKey) bool { return len(keys) > 0 })
	if refused != nil {
		return nil, refused
	}
	return keys, nil
}

// until returns the keys of the issuer. If they are not enough, it waits for the end of one request for newer ones.
func (i *keySource) until(ctx context.Context, asked bool, enough func([]publicKey) bool) ([]publicKey, *Error) {
	for waited := false; ; waited = true {
		keys, flight := i.look(enough)
		hit := keys != nil && enough(keys)
		switch {
		case waited:
		case hit:
			i.hits.Add(1)
		default:
			i.misses.Add(1)
		}
		switch {
		case hit:
			return keys, nil
		case flight == nil || waited:
			if keys == nil {
				return nil, unavailable("the keys of the issuer are not available at this time")
			}
			return keys, nil
		}
		if refused := i.wait(ctx, flight, asked); refused != nil {
			return nil, refused
		}
	}
}

// wait waits for the end of a request for keys. Few calls may wait that strangers can make.
func (i *keySource) wait(ctx context.Context, flight chan struct{}, asked bool) *Error {
	if !asked {
		select {
		case i.waiting <- struct{}{}:
			defer func() { <-i.waiting }()
		default:
			return unavailable("the service asks the issuer for its keys, and enough calls wait for them")
		}
	}
	select {
	case <-flight:
		return nil
	case <-ctx.Done():
		return unavailable("the keys of the issuer did not arrive in time")
	}
}

// hasFailed reports whether the last request for keys has failed.
func (i *keySource) hasFailed() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failed
}

// look returns the keys that may be used, and the request that is under way. It begins one if the keys are old or not
// enough, and the last one is long enough ago.
func (i *keySource) look(enough func([]publicKey) bool) ([]publicKey, chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	var keys []publicKey
	if age := now.Sub(i.fetched); age < i.KeepKeys {
		keys = i.keys
		if age < i.RefreshKeys && enough(keys) {
			return keys, nil
		}
	}
	if i.flight == nil && !now.Before(i.notBefore) && i.ctx.Err() == nil {
		i.flight = make(chan struct{})
		i.flying.Go(i.refresh)
	}
	return keys, i.flight
}

// refresh fetches the keys. After an error, the last good keys stay.
func (i *keySource) refresh() {
	keys, skipped, err := i.fetch(i.ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	i.failed = err != nil
	if err != nil {
		i.notBefore = now.Add(fetchRetry)
		i.failures.Add(1)
		i.log.Warn("the keys of the issuer cannot be fetched", "error", err, "keys", len(i.keys))
	} else {
		if !slices.EqualFunc(keys, i.keys, func(a, b publicKey) bool { return a.id == b.id && a.thumbprint == b.thumbprint }) {
			i.log.Info("the keys of the issuer changed", "keys", len(keys), "unusable", skipped)
		}
		i.keys, i.fetched, i.notBefore = keys, now, now.Add(fetchFloor)
		i.fetches.Add(1)
	}
	close(i.flight)
	i.flight = nil
}
