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
	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
	"github.com/crypto-broker/crypto-broker-operator/broker/watch"
)

// Source follows a directory and has the last good set of its profile file.
type Source struct {
	options
	dir string

	current atomic.Pointer[profile.Set]
	state   atomic.Pointer[State]
	done    chan struct{}

	// looked is the result of the last look at the directory: the digest of the file, or the text
	// of an error. Only the watching goroutine uses it.
	looked string
}

type options struct {
	pollInterval time.Duration
	observe      func(Event)
	watchProblem func(error)
	compile      []profile.CompileOption
	trusted      *trusted
}

// Option changes how Watch works.
type Option func(*options)

// WithPollInterval sets how often the directory is read without a notification of a change.
// The default is 10 s.
func WithPollInterval(d time.Duration) Option {
	return func(o *options) { o.pollInterval = d }
}

// WithObserver calls f after each look at the directory, one call at a time. It calls f before
// State returns the new set. So if f gives the set to a server, the server serves it before State
// returns it. The first call of f is before Watch returns.
func WithObserver(f func(Event)) Option {
	return func(o *options) { o.observe = f }
}

// WithWatchProblem calls f with an error when the directory cannot be watched and is read
// each second instead. It calls f with nil when the directory is watched again.
func WithWatchProblem(f func(error)) Option {
	return func(o *options) { o.watchProblem = f }
}

// WithCompileOptions sets options with which each file is compiled.
func WithCompileOptions(compile ...profile.CompileOption) Option {
	return func(o *options) { o.compile = append(o.compile, compile...) }
}

// Watch reads the profile file of a directory and follows the directory until ctx ends. dir
// is an absolute path. A kubelet may replace the content of the directory, as it does with a
// mounted ConfigMap: by renaming the symbolic link "..data".
//
// Watch returns no error if the directory is missing or has an invalid file, because that
// may be corrected later. [Source.State] says what is wrong.
func Watch(ctx context.Context, dir string, opts ...Option) (*Source, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("profile directory %q: expected an absolute path", dir)
	}
	s := &Source{
		dir:  filepath.Clean(dir),
		done: make(chan struct{}),
		options: options{
			pollInterval: 10 * time.Second,
			observe:      func(Event) {},
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
		Look:     s.look,
		Problem:  s.watchProblem,
		Interval: s.pollInterval,
	})
	go func() {
		defer close(s.done)
		w.Run(ctx)
	}()
	return s, nil
}

// State returns the current state.
func (s *Source) State() State { return *s.state.Load() }

// Wait returns when the directory is not watched any more, after the context of [Watch] has
// ended.
func (s *Source) Wait() { <-s.done }

// look reads the directory, and serves or rejects its set. It reports false, and does
// nothing, if a file is being written.
func (s *Source) look() bool {
	found, err := s.read()
	switch {
	case errors.Is(err, regularfile.ErrBeingWritten):
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

// read returns the files of the directory.
func (s *Source) read() (pair, error) {
	if s.trusted != nil {
		return readPair(s.dir)
	}
	data, _, err := regularfile.Read(filepath.Join(s.dir, profile.FileName), profile.MaxFileSize)
	return pair{profiles: data}, err
}

func (s *Source) take(data []byte) {
	digest := profile.Digest(data)
	if s.unchanged(digest) {
		return
	}
	if current := s.current.Load(); current != nil && current.Digest() == digest {
		// After another file was refused, the directory again has the file of the served set.
		s.publish(current, nil, digest)
		return
	}
	if set, problems := s.build(data, digest); set != nil {
		s.publish(set, problems, digest)
	}
}

// build compiles a set. If it returns nil, it has rejected the set.
func (s *Source) build(data []byte, looked string) (*profile.Set, profile.Problems) {
	set, problems := profile.Compile(profile.FileName, data, s.compile...)
	switch {
	case set == nil:
		s.reject(SetRejected, Event{Problems: problems}, looked)
	case set.Len() == 0 && s.current.Load() == nil:
		// An empty list takes all profiles out of service. A broker that has not served a
		// set yet waits for its first set instead.
		s.reject(NoProfiles, Event{Err: errNoProfiles}, looked)
	default:
		return set, problems
	}
	return nil, nil
}

// publish serves a set and records looked, the digest of its file.
func (s *Source) publish(set *profile.Set, problems profile.Problems, looked string) {
	s.looked = looked
	s.serve(Event{Set: set, Problems: problems})
}

// serve gives a set to the observer, and then sets Current and State.
func (s *Source) serve(event Event) {
	set := event.Set
	reason := Loaded
	if set.Rejected() > 0 {
		reason = ProfilesRejected
	}
	now := time.Now()
	event.Result, event.Reason, event.Withdrawn = ResultLoaded, reason, s.withdrawn(set, now)
	s.observe(event)
	state := State{Digest: set.Digest(), Revision: event.Revision, Since: now, Reason: reason, Withdrawn: event.Withdrawn}
	if before := s.State(); before.Digest == state.Digest {
		state.Since = before.Since
	}
	s.current.Store(set)
	s.state.Store(&state)
}

// reject keeps the served set, and records why the new one is not served.
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

// unchanged reports whether the last look found the same. It then calls the observer.
func (s *Source) unchanged(looked string) bool {
	if s.looked != looked {
		return false
	}
	s.observe(Event{Result: ResultUnchanged, Reason: s.State().Reason})
	return true
}

var errNoProfiles = errors.New("the file lists no profiles")
