// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"context"

	"google.golang.org/grpc/mem"
)

// Health is what a broker says of itself. The numbers are those of
// grpc.health.v1.HealthCheckResponse.
type Health uint32

// What a broker can say of itself.
const (
	// HealthUnknown: it does not know.
	HealthUnknown Health = 0
	// HealthServing: it has profiles and serves.
	HealthServing Health = 1
	// HealthNotServing: it has no profiles yet, or shuts down.
	HealthNotServing Health = 2
)

// String is the name that gRPC has for it, such as "SERVING".
func (h Health) String() string {
	switch h {
	case HealthServing:
		return "SERVING"
	case HealthNotServing:
		return "NOT_SERVING"
	default:
		return "UNKNOWN"
	}
}

var health = &operation{name: "Health", method: "/grpc.health.v1.Health/Check"}

// Health asks the broker for its health, once: a broker that cannot be reached is
// ErrUnavailable at once.
func (c *Client) Health(ctx context.Context) (Health, error) {
	if !c.enter() {
		return HealthUnknown, errClosed(health, "")
	}
	defer c.leave()
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	var reply incoming
	if err := c.conn.Invoke(ctx, health.method, &outgoing{buffer: mem.SliceBuffer{}}, &reply); err != nil {
		return HealthUnknown, c.failed(ctx, health, "", err).error(health, "")
	}
	defer reply.free()
	found := HealthUnknown
	f := fields{wire: reply.buffer.ReadOnlyData()}
	for f.next() {
		if f.number == healthStatus {
			found = Health(f.uint)
		}
	}
	if f.err != nil {
		return HealthUnknown, (&call{op: health}).unreadable(f.err)
	}
	return found, nil
}
