// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// inTurn is a writer that several goroutines may use at the same time.
type inTurn struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (w *inTurn) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(line)
}

// ReportProgress writes the result of describe every two seconds, until stop is called. So a
// command that takes less time prints nothing.
func ReportProgress(to io.Writer, describe func() string) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(quietTime)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Fprintln(to, describe())
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-stopped
	}
}
