// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/clock"
)

func TestNumbersAreAsFarApartAsTheirTimes(t *testing.T) {
	now := time.Now()
	for _, d := range []time.Duration{-time.Hour, 0, time.Nanosecond, 100 * time.Hour} {
		if got := clock.Nanos(now.Add(d)) - clock.Nanos(now); got != int64(d) {
			t.Errorf("found %d, expected %d", got, d)
		}
	}
	if n := clock.Nanos(now.Add(-time.Hour)); n <= 0 {
		t.Errorf("a time of the last hour is %d, expected a number above 0", n)
	}
}
