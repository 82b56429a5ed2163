// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sighting is the first time that the API server reported an object in a certain state.
type sighting struct {
	at     time.Time
	object client.Object
	err    error
}

// watchFor waits in the background for the first object that matches from now on. The API server reports a change within
// milliseconds, but the times in objects are whole seconds.
func watchFor[T client.Object](ctx context.Context, c client.WithWatch, list client.ObjectList, namespace string,
	match func(T) bool) (<-chan sighting, error) {
	watcher, err := c.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		return nil, err
	}
	found := make(chan sighting, 1)
	go func() {
		defer watcher.Stop()
		for each := range watcher.ResultChan() {
			at := time.Now()
			if each.Type == watch.Error {
				found <- sighting{err: apierrors.FromObject(each.Object)}
				return
			}
			if object, ok := each.Object.(T); ok && each.Type != watch.Deleted && match(object) {
				found <- sighting{at: at, object: object}
				return
			}
		}
		found <- sighting{err: fmt.Errorf("the API server ended the watch of %T", list)}
	}()
	return found, nil
}

// await waits for a sighting, and returns an error after a time limit.
func await(ctx context.Context, what string, within time.Duration, sightings <-chan sighting) (sighting, error) {
	select {
	case found := <-sightings:
		if found.err != nil {
			return found, fmt.Errorf("wait until %s: %w", what, found.err)
		}
		return found, nil
	case <-time.After(within):
		return sighting{}, fmt.Errorf("waited %s in vain until %s", within, what)
	case <-ctx.Done():
		return sighting{}, fmt.Errorf("interrupted while waiting until %s", what)
	}
}
