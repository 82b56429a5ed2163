// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"log/slog"
	"time"
)

// WatchClients closes the connections of clients that take longer than idleTime to send the rest
// of a request or to read a reply, until ctx ends. The other clients of their caller can then use
// what they held. It also logs which callers are throttled.
func WatchClients(ctx context.Context, logger *slog.Logger, callers []*Caller, idleTime time.Duration) {
	tick := time.NewTicker(max(time.Millisecond, idleTime/4))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			for _, c := range callers {
				c.reclaim(now)
				if c.throttledSince(now.Add(-idleTime / 4)) {
					logger.Warn("throttled a caller: its clients sent too many calls that were refused or canceled, or too many bytes outside of calls",
						"container", c.name)
				}
				for _, conn := range c.overdue(now, idleTime) {
					logger.Warn("closed a connection: its client took too long to send the rest of a request or to read a reply",
						"container", c.name, "waited", idleTime.String())
					_ = conn.Close() // the client may have closed it already
				}
			}
		case <-ctx.Done():
			return
		}
	}
}
