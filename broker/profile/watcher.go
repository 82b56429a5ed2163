// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watcher turns file system notifications and the passing of time into looks at
// the directory. One goroutine runs it.
type watcher struct {
	source *Source
	notify *fsnotify.Watcher
	// watched is the directory that is being watched, nil where none is: it
	// does not exist, or the system has no inotify instance left. (A node has
	// 128 a user by default, and all brokers of a node may have one user.)
	watched os.FileInfo
	problem string
}

// maxQuiet bounds how long a burst of notifications can put off a look, as a
// multiple of the quiet time that normally precedes it.
const maxQuiet = 10

func (w *watcher) run(ctx context.Context) {
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
		case <-errs: // the queue overflowed; something may have been lost
			burst = w.putOff(quiet, burst)
			continue
		case <-quiet.C:
		case <-poll.C:
		}
		burst = time.Time{}
		w.ensure()
		if !w.source.look() {
			burst = w.putOff(quiet, burst)
		}
		poll.Reset(w.interval())
	}
}

// putOff waits for the end of a burst before the directory is read, but not
// for ever.
func (w *watcher) putOff(quiet *time.Timer, burst time.Time) time.Time {
	now := time.Now()
	if burst.IsZero() {
		burst = now
	}
	latest := burst.Add(maxQuiet * w.source.quiet)
	quiet.Reset(min(w.source.quiet, max(0, latest.Sub(now))))
	return burst
}

// matters tells whether an event can be a new profile file: the file itself,
// the link that a kubelet renames, or the end of the directory.
func (w *watcher) matters(event fsnotify.Event) bool {
	if event.Name == w.source.dir {
		if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
			w.watched = nil
			return true
		}
		return false
	}
	switch filepath.Base(event.Name) {
	case "..data", FileName:
		return true
	default:
		return false
	}
}

// interval is the time to the next look: short while nothing would announce a
// change.
func (w *watcher) interval() time.Duration {
	if w.watched == nil {
		return min(w.source.pollInterval, w.source.fastPollLimit)
	}
	return w.source.pollInterval
}

// ensure watches the directory that is there now. It is another one after the
// directory was removed and made again, or a link to it was changed.
func (w *watcher) ensure() {
	info, err := os.Stat(w.source.dir)
	if err != nil {
		w.forget()
		w.report(err)
		return
	}
	if w.watched != nil && os.SameFile(w.watched, info) {
		return
	}
	w.forget()
	if w.notify == nil {
		if w.notify, err = fsnotify.NewWatcher(); err != nil {
			w.notify = nil
			w.report(err)
			return
		}
	}
	if err := w.notify.Add(w.source.dir); err != nil {
		w.report(err)
		return
	}
	w.watched = info
	w.report(nil)
}

func (w *watcher) forget() {
	if w.notify != nil && len(w.notify.WatchList()) > 0 {
		// The watch may have gone with its directory, which is what is wanted.
		_ = w.notify.Remove(w.source.dir)
	}
	w.watched = nil
}

// report tells of a problem once, not at every poll.
func (w *watcher) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != w.problem {
		w.problem = text
		w.source.watchProblem(err)
	}
}

func (w *watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close() // nothing is left to be told
	}
}
