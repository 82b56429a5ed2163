// SPDX-License-Identifier: Apache-2.0

// Package clock gives times as numbers, for atomic variables. The numbers do not change when somebody sets the
// clock of the machine, unlike nanoseconds since 1970.
package clock

import "time"

// origin is earlier than all times that the process measures, so that no number is 0.
var origin = time.Now().Add(-24 * time.Hour)

// Nanos returns the nanoseconds from a fixed time in the past to t. t has to be computed from
// [time.Now], because only such times have a reading of the monotonic clock.
func Nanos(t time.Time) int64 { return int64(t.Sub(origin)) }
