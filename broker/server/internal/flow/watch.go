// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"log/slog"
	"time"
)

// WatchClients ends the connections of clients that take too long with what they have
// begun, until ctx ends: it keeps others from what their caller may have.
func WatchClients(ctx context.Context, logger *slog.Logger, callers []*Caller, idleTime time.Duration) {
	tick := time.NewTicker(max(time.Millisecond, idleTime/4))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			for _, c := range callers {
				if c.throttledSince(now.Add(-idleTime / 4)) {
					logger.Warn("connections are read slowly: their clients send more of what is refused, given up or of no use than they may",
						"container", c.name)
				}
				for _, conn := range c.overdue(now, idleTime) {
					logger.Warn("a connection is closed: its client neither sends the rest of a request nor reads a reply",
						"container", c.name, "time", idleTime.String())
					_ = conn.Close() // it may be closed by now, which is as good
				}
			}
		case <-ctx.Done():
			return
		}
	}
}
