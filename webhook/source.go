// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The API server gives the webhook five seconds in all.
const (
	// cacheTimeout bounds a read from the cache, which answers at once, but
	// waits when the process has just started and the cache is being filled.
	cacheTimeout = 500 * time.Millisecond

	// liveTimeout bounds a read from the API server.
	liveTimeout = 2 * time.Second
)

// source reads objects from a cache. It reads objects that the cache does not have from the API
// server, because an object may be newer than the cache: a namespace, its profiles and a pod may
// be created at the same time. It also reads objects from the API server that are outdated in the
// cache, if the caller recognises that. Concurrent reads of one object become one read.
type source struct {
	cache, live               client.Reader
	cacheTimeout, liveTimeout time.Duration
	flights                   singleflight.Group
}

func newSource(cache, live client.Reader) *source {
	return &source{cache: cache, live: live, cacheTimeout: cacheTimeout, liveTimeout: liveTimeout}
}

// object is an object that source can read.
type object[T any] interface {
	*T
	client.Object
}

// read returns an object that the caller must not change, or nil if there is
// none.
func read[T any, O object[T]](ctx context.Context, s *source, key client.ObjectKey) (O, error) {
	return readUnless(ctx, s, key, func(O) bool { return false })
}

// readUnless is like read, for a caller that can recognise an outdated object: a cached object
// for which old returns true counts as absent. Several such callers share one read from the API
// server. They do not share it with callers of read, whose read may have begun before the object
// changed.
func readUnless[T any, O object[T]](ctx context.Context, s *source, key client.ObjectKey, old func(O) bool) (O, error) {
	cached, kind := O(new(T)), "absent"
	filling, cancel := context.WithTimeout(ctx, s.cacheTimeout)
	err := s.cache.Get(filling, key, cached)
	cancel()
	switch {
	case err == nil && !old(cached):
		return cached, nil
	case err == nil:
		kind = "old"
	}
	// The API server may answer after any error of the cache.

	flight := s.flights.DoChan(fmt.Sprintf("%s %T %s", kind, cached, key), func() (any, error) {
		// Other callers may still wait for the same read after the first caller has given up.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.liveTimeout)
		defer cancel()
		found := O(new(T))
		err := s.live.Get(ctx, key, found)
		if apierrors.IsNotFound(err) {
			return O(nil), nil
		}
		return found, err
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-flight:
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Val.(O), nil
	}
}
