// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

func TestFailuresOfKeysAreLoggedAfterTheClockWasSetBack(t *testing.T) {
	var log bytes.Buffer
	h := &Handlers{logger: slog.New(slog.NewTextHandler(&log, nil))}
	h.keyLog.next.Store(time.Now().Add(time.Hour).UnixNano()) // from before
	for range 3 {
		h.keyFailed(&Call{Context: context.Background()}, "P", "hsm/k", fmt.Errorf("%w: no answer", keys.ErrUnavailable))
	}
	if n := strings.Count(log.String(), "a key of a key manager cannot be used"); n != 1 {
		t.Errorf("the log has %d lines about the key, expected 1:\n%s", n, log.String())
	}
}
