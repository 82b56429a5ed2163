// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnOperatorThatIsAskedToEndServesItsWebhooksForAWhileAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, ask := context.WithCancel(t.Context())
		serving, end := outlasting(asked, leaveTime)
		defer end()
		<-time.After(time.Hour)
		if synctest.Wait(); serving.Err() != nil {
			t.Fatal("it ended before it was asked")
		}
		ask()
		<-time.After(leaveTime - time.Nanosecond)
		if synctest.Wait(); serving.Err() != nil {
			t.Errorf("it ended before %s had passed", leaveTime)
		}
		<-time.After(time.Nanosecond)
		if synctest.Wait(); serving.Err() == nil {
			t.Errorf("it serves on after %s", leaveTime)
		}
	})
}
