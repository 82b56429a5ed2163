// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/regular"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

// Directory provides the keys of a directory of files and follows it, see the
// package's comment.
type Directory struct {
	options
	dir  string
	done chan struct{}

	// current maps ids to keys; nil where a key is bad and never was good.
	current atomic.Pointer[map[string]*Key]

	// The rest is used by the watching goroutine alone.
	loaded map[string]*loaded
	told   string // what the observer was told last
}

var _ Provider = (*Directory)(nil)

type options struct {
	pollInterval time.Duration
	observe      func(Event)
	watchProblem func(error)
}

// Option changes how Watch works.
type Option func(*options)

// WithPollInterval sets how often the directory is read even though nothing
// announced a change; 10 s by default.
func WithPollInterval(d time.Duration) Option {
	return func(o *options) { o.pollInterval = d }
}

// WithObserver calls f after each look at the directory that found something
// else than the one before, one call at a time. The first call happens before
// Watch returns.
func WithObserver(f func(Event)) Option {
	return func(o *options) { o.observe = f }
}

// WithWatchProblem calls f with the reason when the directory cannot be watched
// and is read each second instead, and with nil once it is watched again.
func WithWatchProblem(f func(error)) Option {
	return func(o *options) { o.watchProblem = f }
}

// Event tells an observer what is in use after a look at the directory.
type Event struct {
	// Keys is how many keys are in use, Unusable how many are not because they
	// are bad and never were good.
	Keys, Unusable int
	// Problems are those of all files, in the order of their paths.
	Problems []Problem
	// Err is why the directory could not be read. The keys that were in use stay
	// so.
	Err error
}

// Watch reads the keys of a directory, given by its absolute path, and follows
// it until ctx ends. Nothing about its content is an error: bad keys are
// Problems, and a directory that is missing or not readable may come later.
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
			watchProblem: func(error) {},
		},
	}
	for _, option := range opts {
		option(&d.options)
	}
	if d.pollInterval <= 0 {
		return nil, fmt.Errorf("poll interval %s: expected more than 0", d.pollInterval)
	}
	w := watch.New(watch.Config{
		Dir:       d.dir,
		Also:      d.subdirectories,
		Matters:   func(name string) bool { return !strings.HasPrefix(name, ".") },
		Look:      d.look,
		Problem:   d.watchProblem,
		Interval:  d.pollInterval,
		Unwatched: time.Second,
		Quiet:     50 * time.Millisecond,
	})
	go func() {
		defer close(d.done)
		w.Run(ctx)
	}()
	return d, nil
}

// Wait returns once the directory is not watched any more, after the end of the
// context that Watch was given.
func (d *Directory) Wait() { <-d.done }

// Key implements Provider. The id is only ever looked up among the keys that
// were found; it never becomes part of a path.
func (d *Directory) Key(_ context.Context, id string) (*Key, error) {
	current := d.current.Load()
	if current == nil {
		return nil, ErrUnavailable
	}
	switch key, ok := (*current)[id]; {
	case !ok:
		return nil, ErrNotFound
	case key == nil:
		return nil, ErrUnusable
	default:
		return key, nil
	}
}

// maxReads is how often a directory that changes while it is read is read again
// at once, before that is left to the next look.
const maxReads = 3

// look reads the directory and reports whether it was at rest.
func (d *Directory) look() bool {
	for range maxReads {
		before := d.generation()
		next, problems, err := d.read()
		switch {
		case errors.Is(err, regular.ErrBeingWritten):
			return false
		case err != nil:
			d.tell(Event{Keys: d.count(), Err: fmt.Errorf("read the key directory: %w", err)})
			return true
		case d.generation() != before:
			continue // a kubelet replaced it: what was read may be half old, half new
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
	d.tell(Event{Keys: usable, Unusable: len(next) - usable, Problems: problems})
}

// authorityKeys are the public keys of all certificate authorities that the
// directory has certificates of, as SPKISHA256. The key of one may lie there under
// a second id, without a certificate that says so.
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
			if spki, err := spkiSHA256(certificate.PublicKey); err == nil { // else it is no key that the broker can have
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

// tell informs the observer, unless it knows.
func (d *Directory) tell(event Event) {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d %v\n", event.Keys, event.Unusable, event.Err)
	for _, problem := range event.Problems {
		fmt.Fprintln(&b, problem)
	}
	for _, id := range d.ids() {
		if key := d.loaded[id]; key.key != nil {
			fmt.Fprintf(&b, "%s %x\n", id, key.digest)
		}
	}
	if text := b.String(); text != d.told {
		d.told = text
		d.observe(event)
	}
}

func (d *Directory) ids() []string {
	ids := make([]string, 0, len(d.loaded))
	for id := range d.loaded {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// subdirectories are the directories of keys, which may be volumes of their own.
// Where the directory cannot be read there are none; look tells why.
func (d *Directory) subdirectories() []string {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil
	}
	var dirs []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		path := filepath.Join(d.dir, entry.Name())
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			dirs = append(dirs, path)
		}
	}
	return dirs
}

// generation identifies what a kubelet has put into the directory and into those
// in it. Without a kubelet it is always the same.
func (d *Directory) generation() string {
	var b strings.Builder
	for _, dir := range append(d.subdirectories(), d.dir) {
		if target, err := os.Readlink(filepath.Join(dir, watch.DataLink)); err == nil {
			fmt.Fprintf(&b, "%s\x00%s\x00", dir, target)
		}
	}
	return b.String()
}
