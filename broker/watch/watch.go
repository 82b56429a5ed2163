// SPDX-License-Identifier: Apache-2.0

// Package watch follows a directory whose files change, and calls a function that reads the
// directory after each change.
//
// A kubelet replaces the content of a mounted ConfigMap or Secret as a whole: it renames a
// new symbolic link "..data" over the old one. The package waits until the notifications of
// the file system pause, and then calls the function. Notifications can be lost or be
// unavailable, so the package calls the function in intervals as well. It does not read
// files itself.
package watch

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// DataLink is the name of the symbolic link that a kubelet renames.
const DataLink = "..data"

// Links returns a text that changes when a kubelet replaces the content of one of the directories. Without a kubelet it never changes.
// If it has changed while several files were read, old and new ones may be mixed.
func Links(dirs ...string) string {
	var b strings.Builder
	for _, dir := range dirs {
		if target, err := os.Readlink(filepath.Join(dir, DataLink)); err == nil {
			fmt.Fprintf(&b, "%s\x00%s\x00", dir, target)
		}
	}
	return b.String()
}

// Subdirectories returns the directories in a directory, which may be mounted volumes, except for those of a kubelet. It returns none
// if the directory cannot be read.
func Subdirectories(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var dirs []string
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if info, err := os.Stat(path); err == nil && info.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
			dirs = append(dirs, path)
		}
	}
	return dirs
}

// Config says what a Watcher follows. Dir, Matters, Look and Interval are required.
type Config struct {
	// Dir is the absolute path of the directory. The directory may be missing and appear
	// later.
	Dir string
	// Also returns directories inside Dir that are watched as well. The Watcher calls it
	// before each call of Look.
	Also func() []string
	// Matters reports whether a change of the file with this base name is a reason to call
	// Look. A change of [DataLink] always is.
	Matters func(name string) bool
	// Look reads the directory, and reports whether its content was complete and did not
	// change meanwhile. If not, the Watcher soon calls Look again. It never calls Look twice
	// at one time.
	Look func() bool
	// Problem is called with an error when a directory cannot be watched, so that only
	// intervals find its changes. It is called with nil when the directory is watched again. It
	// may be nil.
	Problem func(error)
	// Interval is the time after which Look is called without a notification. If a directory
	// cannot be watched, the shorter of Interval and Unwatched counts. The default of Unwatched
	// is one second.
	Interval, Unwatched time.Duration
	// Quiet is the time without a notification after which Look is called. If notifications
	// continue, Look is called after ten times that time. The default is 50 ms.
	Quiet time.Duration
}

// maxQuiet is how long a burst of notifications delays a look, as a multiple of Quiet.
const maxQuiet = 10

// Watcher follows one directory.
type Watcher struct {
	Config
	notify *fsnotify.Watcher
	// watched are the directories that are watched. A directory is not among them if it
	// does not exist, or if the system has no inotify instance left. (By default, a user of
	// a node has 128, and all brokers of a node may have the same user.)
	watched map[string]os.FileInfo
	whole   bool // whether all directories are watched
	problem string
}

// New begins to watch, and calls Look for the first time.
func New(config Config) *Watcher {
	config.Unwatched, config.Quiet = cmp.Or(config.Unwatched, time.Second), cmp.Or(config.Quiet, 50*time.Millisecond)
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
	var burst time.Time // the time of the first notification after which the files were not read yet

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
		case <-errs: //nolint:errcheck // the queue overflowed; a look finds the changes
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

// putOff delays the next look until notifications pause, but at most maxQuiet times Quiet
// after the burst began. It returns when the burst began.
func (w *Watcher) putOff(quiet *time.Timer, burst time.Time) time.Time {
	now := time.Now()
	if burst.IsZero() {
		burst = now
	}
	latest := burst.Add(maxQuiet * w.Quiet)
	quiet.Reset(min(w.Quiet, max(0, latest.Sub(now))))
	return burst
}

// matters reports whether an event can be a change: of a file that matters, of the link that
// a kubelet renames, or the removal of a directory.
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

// interval returns the time to the next look without a notification.
func (w *Watcher) interval() time.Duration {
	if !w.whole {
		return min(w.Interval, w.Unwatched)
	}
	return w.Interval
}

// ensure watches the directories that exist now. A directory that was removed and made again is a
// new directory and needs a new watch. The same holds for the new target of a link.
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
		// An error means that there is no such watch, because its directory was removed
		// or was never watched.
		_ = w.notify.Remove(dir)
	}
	delete(w.watched, dir)
}

// report calls Problem if the problem has changed, not at every look.
func (w *Watcher) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == w.problem {
		return
	}
	if w.problem = text; w.Problem != nil {
		w.Problem(err)
	}
}

func (w *Watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close() // no more notifications are needed
	}
}
