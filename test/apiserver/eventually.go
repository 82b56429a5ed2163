// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// pauses are the pauses between two calls of a condition. Most conditions hold after a moment. For other conditions the pauses
// grow, because a hundred calls a second take much processor time of the API server.
var pauses = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Cap: 100 * time.Millisecond, Steps: math.MaxInt}

// Eventually waits until holds returns no error. After three minutes, the test fails with the last
// error and what was waited for, such as "the set is there".
func Eventually(t testing.TB, what string, holds func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var last error
	err := pauses.DelayFunc().Until(ctx, true, true, func(context.Context) (bool, error) {
		last = holds()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waited until %s: %v", what, last)
	}
}
