// SPDX-License-Identifier: Apache-2.0

// Package watch follows a directory that a kubelet, an editor or an operator
// changes, and tells when to look at it again.
//
// A kubelet replaces the content of a mounted ConfigMap or Secret as a whole, by
// renaming the symbolic link "..data" over the old one. Notifications of the
// file system say when; a look follows once they come to rest. Notifications
// can be lost or not be had at all, so the directory is looked at in intervals,
// too. What is seen there is for the package's user to judge.
package watch

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// DataLink is the name of the symbolic link that a kubelet renames.
const DataLink = "..data"

// Config says what is followed. All fields but Also are needed.
type Config struct {
	// Dir is the directory, by its absolute path. It may be missing and appear
	// later.
	Dir string
	// Also lists directories inside Dir that are watched as well. It is called
	// before each look.
	Also func() []string
	// Matters reports whether a change of a file of this name, without its
	// directory, is a reason to look. DataLink always is.
	Matters func(name string) bool
	// Look looks at the directory and reports whether it was at rest; if not, the
	// next look is soon. One goroutine calls it.
	Look func() bool
	// Problem is called with the reason when a directory cannot be watched and is
	// looked at each Unwatched interval instead, and with nil once it is watched.
	Problem func(error)
	// Interval is the time between looks that nothing announced, Unwatched the
	// same where nothing would announce a change. The shorter one counts then.
	Interval, Unwatched time.Duration
	// Quiet is how long notifications must have been silent before a look. A
	// burst of them puts it off ten times as long at most.
	Quiet time.Duration
}

// maxQuiet bounds a burst of notifications, as a multiple of the quiet time.
const maxQuiet = 10

// Watcher follows one directory.
type Watcher struct {
	Config
	notify *fsnotify.Watcher
	// watched are the directories that are being watched. Where one is missing,
	// it does not exist, or the system has no inotify instance left. (A node has
	// 128 a user by default, and all brokers of a node may have one user.)
	watched map[string]os.FileInfo
	whole   bool // all directories are watched
	problem string
}

// New begins to watch and looks for the first time.
func New(config Config) *Watcher {
	w := &Watcher{Config: config, watched: map[string]os.FileInfo{}}
	w.ensure()
	w.Look()
	return w
}

// Run follows the directory until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	defer w.close()
	poll := time.NewTimer(w.interval())
	defer poll.Stop()
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	defer quiet.Stop()
	var burst time.Time // when the notifications began that are not acted on yet

	for {
		var events <-chan fsnotify.Event
		var errs <-chan error
		if w.notify != nil {
			events, errs = w.notify.Events, w.notify.Errors
		}
		select {
		case <-ctx.Done():
			return
		case event := <-events:
			if !w.matters(event) {
				continue
			}
			burst = w.putOff(quiet, burst)
			continue
		case <-errs: //nolint:errcheck // the queue overflowed; the look finds what was lost
			burst = w.putOff(quiet, burst)
			continue
		case <-quiet.C:
		case <-poll.C:
		}
		burst = time.Time{}
		w.ensure()
		if !w.Look() {
			burst = w.putOff(quiet, burst)
		}
		poll.Reset(w.interval())
	}
}

// putOff waits for the end of a burst before the directory is looked at, but
// not for ever.
func (w *Watcher) putOff(quiet *time.Timer, burst time.Time) time.Time {
	now := time.Now()
	if burst.IsZero() {
		burst = now
	}
	latest := burst.Add(maxQuiet * w.Quiet)
	quiet.Reset(min(w.Quiet, max(0, latest.Sub(now))))
	return burst
}

// matters reports whether an event can be a change: a file that counts, the link
// that a kubelet renames, or the end of a directory.
func (w *Watcher) matters(event fsnotify.Event) bool {
	if _, itself := w.watched[event.Name]; itself && event.Has(fsnotify.Remove|fsnotify.Rename) {
		delete(w.watched, event.Name)
		return true
	}
	if event.Name == w.Dir {
		return false
	}
	name := filepath.Base(event.Name)
	return name == DataLink || w.Matters(name)
}

// interval is the time to the next look: short while nothing would announce a
// change.
func (w *Watcher) interval() time.Duration {
	if !w.whole {
		return min(w.Interval, w.Unwatched)
	}
	return w.Interval
}

// ensure watches the directories that are there now. One is another after it
// was removed and made again, or a link to it was changed.
func (w *Watcher) ensure() {
	dirs := []string{w.Dir}
	if w.Also != nil {
		dirs = append(dirs, w.Also()...)
	}
	wanted := make(map[string]bool, len(dirs))
	for _, dir := range dirs {
		wanted[dir] = true
	}
	for dir := range w.watched {
		if !wanted[dir] {
			w.forget(dir)
		}
	}
	var failed error
	for _, dir := range dirs {
		if err := w.ensureOne(dir); err != nil && failed == nil {
			failed = err
		}
	}
	w.whole = failed == nil
	w.report(failed)
}

func (w *Watcher) ensureOne(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		w.forget(dir)
		return err
	}
	if before, ok := w.watched[dir]; ok && os.SameFile(before, info) {
		return nil
	}
	w.forget(dir)
	if w.notify == nil {
		notify, err := fsnotify.NewWatcher()
		if err != nil {
			return err
		}
		w.notify = notify
	}
	if err := w.notify.Add(dir); err != nil {
		return err
	}
	w.watched[dir] = info
	return nil
}

func (w *Watcher) forget(dir string) {
	if w.notify != nil {
		// The watch may have gone with its directory, or never have been, which
		// is what is wanted.
		_ = w.notify.Remove(dir)
	}
	delete(w.watched, dir)
}

// report tells of a problem once, not at every look.
func (w *Watcher) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != w.problem {
		w.problem = text
		w.Problem(err)
	}
}

func (w *Watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close() // nothing is left to be told
	}
}
