// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

// Directory provides the keys of a directory of files, and follows the directory. The comment
// of the package has the names of the files.
type Directory struct {
	options
	dir  string
	done chan struct{}

	// current has the keys by id. A key is nil if its files were never valid.
	current atomic.Pointer[map[string]*Key]

	// Only the watching goroutine uses the fields below.
	loaded   map[string]*loaded
	lastText string // the last event of the observer, as text
}

var _ Provider = (*Directory)(nil)

type options struct {
	pollInterval time.Duration
	observe      func(Event)
	watchProblem func(error)
}

// Option changes how Watch works.
type Option func(*options)

// WithObserver calls f after each look at the directory that found a change, one call at a
// time. The first call of f is before Watch returns.
func WithObserver(f func(Event)) Option {
	return func(o *options) { o.observe = f }
}

// WithWatchProblem calls f with an error when the directory cannot be watched and is read
// each second instead. It calls f with nil when the directory is watched again.
func WithWatchProblem(f func(error)) Option {
	return func(o *options) { o.watchProblem = f }
}

// Event is the outcome of a look at the directory, for an observer.
type Event struct {
	// Keys is the number of keys that are in use. Unusable is the number of keys that are not in
	// use, because their files were never valid.
	Keys, Unusable int
	// Problems are the problems of all files, sorted by path.
	Problems []Problem
	// Err is the reason why the directory could not be read, or nil. The keys that were in use
	// stay in use.
	Err error
}

// Watch reads the keys of a directory, and follows the directory until ctx ends. dir is an
// absolute path. Watch returns no error for invalid keys, which are Problems, nor for a
// directory that is missing or cannot be read, because that may be corrected later.
func Watch(ctx context.Context, dir string, opts ...Option) (*Directory, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("key directory %q: expected an absolute path", dir)
	}
	d := &Directory{
		dir:    filepath.Clean(dir),
		done:   make(chan struct{}),
		loaded: map[string]*loaded{},
		options: options{
			pollInterval: 10 * time.Second,
			observe:      func(Event) {},
		},
	}
	for _, option := range opts {
		option(&d.options)
	}
	w := watch.New(watch.Config{
		Dir:      d.dir,
		Also:     func() []string { return watch.Subdirectories(d.dir) },
		Matters:  func(name string) bool { return !strings.HasPrefix(name, ".") },
		Look:     d.look,
		Problem:  d.watchProblem,
		Interval: d.pollInterval,
	})
	go func() {
		defer close(d.done)
		w.Run(ctx)
	}()
	return d, nil
}

// Wait returns when the directory is not watched any more, after the context of [Watch] has
// ended.
func (d *Directory) Wait() { <-d.done }

// Key implements Provider. It only looks up the id among the keys that were found. The id
// never becomes part of a path. Keys of files have no versions.
func (d *Directory) Key(_ context.Context, name Name) (*Key, error) {
	current := d.current.Load()
	if current == nil {
		return nil, ErrUnavailable
	}
	switch key, ok := (*current)[name.ID]; {
	case !ok, name.Version != "":
		return nil, ErrNotFound
	case key == nil:
		return nil, ErrUnusable
	default:
		return key, nil
	}
}

// maxReads is the maximum number of times that one look reads a directory that changes while it
// is read.
const maxReads = 3

// look reads the directory. It reports false if the directory changed while it was read, so
// that the next look has to be soon.
func (d *Directory) look() bool {
	for range maxReads {
		before := d.links()
		next, problems, err := d.read()
		switch {
		case errors.Is(err, regularfile.ErrBeingWritten):
			return false
		case err != nil:
			d.report(Event{Keys: d.count(), Err: fmt.Errorf("read the key directory: %w", err)})
			return true
		case d.links() != before:
			continue // a kubelet replaced the content, so old and new files may be mixed
		}
		d.publish(next, problems)
		return true
	}
	return false
}

func (d *Directory) read() (map[string]*loaded, []Problem, error) {
	all, problems, err := survey(d.dir)
	if err != nil {
		return nil, nil, err
	}
	next := make(map[string]*loaded, len(all))
	for _, f := range all {
		key, more, err := load(d.dir, f, d.loaded[f.id])
		if err != nil {
			return nil, nil, err
		}
		next[f.id] = key
		problems = append(problems, more...)
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Path, b.Path) })
	return next, problems, nil
}

func (d *Directory) publish(next map[string]*loaded, problems []Problem) {
	authorities := authorityKeys(next)
	current := make(map[string]*Key, len(next))
	for id, l := range next {
		current[id] = l.key
		if key := l.key; key != nil && key.public != nil && authorities[key.spki] && !key.authority {
			marked := *key
			marked.authority = true
			current[id] = &marked
		}
	}
	d.loaded = next
	d.current.Store(&current)
	usable := d.count()
	d.report(Event{Keys: usable, Unusable: len(next) - usable, Problems: problems})
}

// authorityKeys returns the public keys of all certificate authorities whose certificates are in
// the directory, as SPKISHA256. The directory may have the key of an authority under another id
// as well, without a certificate.
func authorityKeys(all map[string]*loaded) map[[sha256.Size]byte]bool {
	authorities := map[[sha256.Size]byte]bool{}
	for _, l := range all {
		if l.key == nil {
			continue
		}
		for _, certificate := range l.key.chain {
			if !ofAuthority(certificate) {
				continue
			}
			if spki, err := spkiSHA256(certificate.PublicKey); err == nil { // no other key can be in the directory
				authorities[spki] = true
			}
		}
	}
	return authorities
}

func (d *Directory) count() int {
	usable := 0
	for _, l := range d.loaded {
		if l.key != nil {
			usable++
		}
	}
	return usable
}

// report calls the observer, unless nothing has changed since the last call.
func (d *Directory) report(event Event) {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d %v\n", event.Keys, event.Unusable, event.Err)
	for _, problem := range event.Problems {
		fmt.Fprintln(&b, problem)
	}
	for _, id := range slices.Sorted(maps.Keys(d.loaded)) {
		if key := d.loaded[id]; key.key != nil {
			fmt.Fprintf(&b, "%s %x\n", id, key.digest)
		}
	}
	if text := b.String(); text != d.lastText {
		d.lastText = text
		d.observe(event)
	}
}

// links returns a text that changes when a kubelet replaces the content of the directory or of a directory in it.
func (d *Directory) links() string { return watch.Links(append(watch.Subdirectories(d.dir), d.dir)...) }
