// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import (
	"context"

	"google.golang.org/grpc/mem"
)

// Health is the health of a broker. The numbers are the numbers of
// grpc.health.v1.HealthCheckResponse.
type Health uint32

// The values of Health.
const (
	// HealthUnknown means that the health is not known.
	HealthUnknown Health = 0
	// HealthServing means that the broker has profiles and serves calls.
	HealthServing Health = 1
	// HealthNotServing means that the broker has no profiles yet, or shuts down.
	HealthNotServing Health = 2
)

// String returns the name of the health in gRPC, such as "SERVING".
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

// Health returns the health of the broker. It is tried once, and returns ErrUnavailable at once
// if the broker cannot be reached.
func (c *Client) Health(ctx context.Context) (Health, error) {
	if !c.enter() {
		return HealthUnknown, errClosed(health, "")
	}
	defer c.leave()
	ctx, cancel := c.limited(ctx)
	defer cancel()
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
