// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestACheckIsRepeatedUntilItSucceeds(t *testing.T) {
	tries := 0
	err := Eventually(t.Context(), time.Minute, "the third try", func(context.Context) error {
		if tries++; tries < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("found %d tries and the error %v, expected 3 and none", tries, err)
	}
}

func TestAWaitEndsWithItsTimeAndWithItsContextAndNamesTheLastError(t *testing.T) {
	last := errors.New("not yet")
	if err := Eventually(t.Context(), 0, "ever", func(context.Context) error { return last }); !errors.Is(err, last) {
		t.Errorf("after the time: found %v, expected the last error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := Eventually(ctx, time.Hour, "ever", func(context.Context) error {
		cancel()
		return last
	})
	if !errors.Is(err, last) || !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: found %v, expected it and the last error", err)
	}
}
