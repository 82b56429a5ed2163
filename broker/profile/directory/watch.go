// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/broker/regular"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

// Source follows a directory and holds the last good set of its profile file.
type Source struct {
	options
	dir string

	current atomic.Pointer[profile.Set]
	state   atomic.Pointer[State]
	done    chan struct{}

	// looked is what the last look at the directory found: a digest, or the
	// text of an error. Only the watching goroutine uses it.
	looked string
}

type options struct {
	pollInterval  time.Duration
	quiet         time.Duration
	observe       func(Event)
	watchProblem  func(error)
	now           func() time.Time
	fastPollLimit time.Duration
	compile       []profile.CompileOption
	trusted       *trusted
}

// Option changes how Watch works.
type Option func(*options)

// WithPollInterval sets how often the directory is read even though nothing
// announced a change; 10 s by default.
func WithPollInterval(d time.Duration) Option {
	return func(o *options) { o.pollInterval = d }
}

// WithObserver calls f after each look at the directory, one call at a time.
// It is called before Current and State return the new set, so that a server
// that f hands the set to serves it before anybody can ask for it. The first call
// happens before Watch returns.
func WithObserver(f func(Event)) Option {
	return func(o *options) { o.observe = f }
}

// WithWatchProblem calls f with the reason when the directory cannot be watched
// and is polled each second instead, and with nil once it is watched again.
func WithWatchProblem(f func(error)) Option {
	return func(o *options) { o.watchProblem = f }
}

// WithCompileOptions compiles each file with these options.
func WithCompileOptions(compile ...profile.CompileOption) Option {
	return func(o *options) { o.compile = append(o.compile, compile...) }
}

// Watch reads the profile file of a directory, given by its absolute path, and
// follows it until ctx ends. It understands how a kubelet replaces a mounted
// ConfigMap: by renaming the symbolic link "..data" over the old one.
//
// Nothing about the directory is an error at this point: it may be missing or
// hold an invalid file, and be put right later. State tells.
func Watch(ctx context.Context, dir string, opts ...Option) (*Source, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("profile directory %q: expected an absolute path", dir)
	}
	s := &Source{
		dir:  filepath.Clean(dir),
		done: make(chan struct{}),
		options: options{
			pollInterval:  10 * time.Second,
			quiet:         50 * time.Millisecond,
			observe:       func(Event) {},
			watchProblem:  func(error) {},
			now:           time.Now,
			fastPollLimit: time.Second,
		},
	}
	for _, option := range opts {
		option(&s.options)
	}
	if s.trusted != nil {
		if err := s.trusted.prepare(); err != nil {
			return nil, err
		}
	}
	if s.pollInterval <= 0 {
		return nil, fmt.Errorf("poll interval %s: expected more than 0", s.pollInterval)
	}
	s.state.Store(&State{Reason: NoProfiles})
	if s.trusted != nil {
		s.restore()
	}
	w := watch.New(watch.Config{
		Dir: s.dir,
		Matters: func(name string) bool {
			return name == profile.FileName || (s.trusted != nil && name == signed.FileName)
		},
		Look:      s.look,
		Problem:   s.watchProblem,
		Interval:  s.pollInterval,
		Unwatched: s.fastPollLimit,
		Quiet:     s.quiet,
	})
	go func() {
		defer close(s.done)
		w.Run(ctx)
	}()
	return s, nil
}

// Current is the set that is served, nil while there is none.
func (s *Source) Current() *profile.Set { return s.current.Load() }

// State tells what is served, since when and why.
func (s *Source) State() State { return *s.state.Load() }

// Wait returns once the directory is not watched any more, after the end of the
// context that Watch was given.
func (s *Source) Wait() { <-s.done }

// look reads the directory and acts on what it finds. It reports whether that was
// at rest; what is being written is left for a later look.
func (s *Source) look() bool {
	found, err := s.read()
	switch {
	case errors.Is(err, regular.ErrBeingWritten):
		return false
	case errors.Is(err, fs.ErrNotExist):
		s.reject(Missing, Event{Err: err}, "missing")
	case err != nil:
		s.reject(SetRejected, Event{Err: err}, err.Error())
	case s.trusted != nil:
		return s.takeSigned(found)
	default:
		s.take(found.profiles)
	}
	return true
}

// read returns what the directory holds.
func (s *Source) read() (pair, error) {
	if s.trusted != nil {
		return readPair(s.dir)
	}
	data, _, err := regular.Read(filepath.Join(s.dir, profile.FileName), profile.MaxFileSize)
	return pair{profiles: data}, err
}

func (s *Source) take(data []byte) {
	digest := profile.Digest(data)
	if s.unchanged(digest) {
		return
	}
	if current := s.current.Load(); current != nil && current.Digest() == digest {
		// The set that is served is back after something else was refused.
		s.publish(current, nil, digest)
		return
	}
	if set, problems := s.build(data, digest); set != nil {
		s.publish(set, problems, digest)
	}
}

// build compiles a set; where it returns none, it has rejected it.
func (s *Source) build(data []byte, looked string) (*profile.Set, profile.Problems) {
	set, problems := profile.Compile(profile.FileName, data, s.compile...)
	switch {
	case set == nil:
		s.reject(SetRejected, Event{Problems: problems}, looked)
	case set.Len() == 0 && s.current.Load() == nil:
		// An empty list takes all profiles from a broker that serves, but one that
		// starts waits for its first.
		s.reject(NoProfiles, Event{Err: errNoProfiles}, looked)
	default:
		return set, problems
	}
	return nil, nil
}

// publish serves a set. looked is what the directory holds.
func (s *Source) publish(set *profile.Set, problems profile.Problems, looked string) {
	s.looked = looked
	s.serve(Event{Set: set, Problems: problems})
}

// serve hands a set to the observer and then tells of it.
func (s *Source) serve(event Event) {
	set := event.Set
	reason := Loaded
	if set.Rejected() > 0 {
		reason = ProfilesRejected
	}
	now := s.now()
	event.Result, event.Reason, event.Withdrawn = ResultLoaded, reason, s.withdrawn(set, now)
	s.observe(event)
	state := State{Digest: set.Digest(), Revision: event.Revision, Since: now, Reason: reason, Withdrawn: event.Withdrawn}
	if before := s.State(); before.Digest == state.Digest {
		state.Since = before.Since
	}
	s.current.Store(set)
	s.state.Store(&state)
}

// reject keeps what is served and says why nothing newer is.
func (s *Source) reject(reason Reason, event Event, looked string) {
	if s.unchanged(looked) {
		return
	}
	s.looked = looked
	state := s.State()
	if state.Digest == "" {
		reason = NoProfiles
	}
	state.Reason = reason
	event.Result, event.Reason = ResultRejected, reason
	s.observe(event)
	s.state.Store(&state)
}

func (s *Source) unchanged(looked string) bool {
	if s.looked != looked {
		return false
	}
	s.observe(Event{Result: ResultUnchanged, Reason: s.State().Reason})
	return true
}

var errNoProfiles = errors.New("the file lists no profiles")
