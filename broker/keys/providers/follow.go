// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

// pollInterval is how often the directory is read without a notification of a change.
const pollInterval = 10 * time.Second

// Event is the outcome of a look at the directory that found a change.
type Event struct {
	// Providers is the number of providers that are open.
	Providers int
	// Problems say which providers could not be opened. If such a provider was open before, it
	// stays as it was.
	Problems []error
	// Err is the reason why the directory could not be read, or nil. All providers stay as they
	// were.
	Err error
}

// LogTo returns an observer for [Follow] that logs each event. dir is the directory.
func LogTo(logger *slog.Logger, dir string) func(Event) {
	return func(event Event) {
		if event.Err != nil {
			logger.Warn("cannot read the key providers: those that are open stay open", "directory", dir, "providers", event.Providers, "error", event.Err)
			return
		}
		logger.Info("key providers opened", "directory", dir, "providers", event.Providers)
		for _, problem := range event.Problems {
			logger.Warn("cannot use a key provider, or cannot use its new configuration", "problem", problem)
		}
	}
}

// Followed are the providers of a directory.
type Followed struct {
	dir     string
	types   Types
	use     func(map[string]keys.Provider)
	observe func(Event)
	done    chan struct{}

	// Only the goroutine that follows uses the fields below.
	open     map[string]opened
	lastText string // the last event of the observer, as text
	closing  sync.WaitGroup
}

type opened struct {
	Provider
	digest [sha256.Size]byte
}

// Follow opens the providers of a directory, and follows the directory until ctx ends. It calls
// use with all providers after each change of one of them, and observe after each change or
// problem. The first calls are before Follow returns. dir is an absolute path. A provider that is
// replaced or removed is closed once its requests have ended.
func Follow(ctx context.Context, dir string, types Types, use func(map[string]keys.Provider), observe func(Event)) (*Followed, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("directory of key providers %q: expected an absolute path", dir)
	}
	f := &Followed{dir: filepath.Clean(dir), types: types, use: use, observe: observe, done: make(chan struct{}), open: map[string]opened{}}
	w := watch.New(watch.Config{
		Dir:      f.dir,
		Also:     func() []string { return watch.Subdirectories(f.dir) }, // with the credentials
		Matters:  func(name string) bool { return !strings.HasPrefix(name, ".") },
		Look:     f.look,
		Interval: pollInterval,
	})
	go func() {
		defer close(f.done)
		w.Run(ctx)
		f.use(nil)
		for _, o := range f.open {
			f.close(o)
		}
		f.closing.Wait()
	}()
	return f, nil
}

// Wait returns when all providers are closed, after the context of [Follow] has ended.
func (f *Followed) Wait() { <-f.done }

// look reads the directory, and reports whether it was complete.
func (f *Followed) look() bool {
	before := f.links()
	sources, err := read(f.dir)
	// A kubelet may have replaced the content meanwhile. A new token must not get to an old server.
	if errors.Is(err, regularfile.ErrBeingWritten) || f.links() != before {
		for _, s := range sources {
			s.credentials.Forget()
		}
		return false
	}
	if err != nil {
		f.tell(Event{Providers: len(f.open), Err: err}, "")
		return true
	}
	next := make(map[string]opened, len(sources))
	var problems []error
	var text strings.Builder
	changed := false
	for _, s := range sources {
		name := s.config.Name
		before, isOpen := f.open[name]
		fmt.Fprintf(&text, "%s %x\n", name, s.digest)
		if isOpen && before.digest == s.digest {
			next[name] = before
			s.credentials.Forget()
			continue
		}
		provider, err := f.types.Open(&s.config, s.credentials)
		s.credentials.Forget()
		switch {
		case err == nil:
			next[name], changed = opened{provider, s.digest}, true
		case isOpen:
			problems, next[name] = append(problems, err), before
		default:
			problems = append(problems, err)
		}
	}
	if changed || len(next) != len(f.open) { // fewer are open if one was removed
		f.replace(next)
	}
	f.tell(Event{Providers: len(next), Problems: problems}, text.String())
	return true
}

// links returns a text that changes when a kubelet replaces the content of the directory or of a directory in it.
func (f *Followed) links() string { return watch.Links(append(watch.Subdirectories(f.dir), f.dir)...) }

// replace replaces the providers, and closes those that are not used any more.
func (f *Followed) replace(next map[string]opened) {
	before := f.open
	f.open = next
	all := make(map[string]keys.Provider, len(next))
	for name, o := range next {
		all[name] = o.Provider
	}
	f.use(all)
	for name, o := range before {
		if next[name].Provider != o.Provider {
			f.close(o)
		}
	}
}

// close closes a provider without waiting for its requests.
func (f *Followed) close(o opened) { f.closing.Go(o.Close) }

// tell calls the observer, unless nothing has changed since the last call. digests has the
// digests of all providers.
func (f *Followed) tell(event Event, digests string) {
	text := fmt.Sprintf("%d %v %v\n%s", event.Providers, event.Problems, event.Err, digests)
	if text != f.lastText {
		f.lastText = text
		f.observe(event)
	}
}
