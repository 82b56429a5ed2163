// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/clock"
)

// keyLogInterval is the shortest time between two lines about keys that cannot be used. While a
// key manager is unreachable, each call that needs it fails.
const keyLogInterval = time.Second

// keyLog limits the lines about keys.
type keyLog struct {
	next    atomic.Int64 // when the next line may be written, as a number of package clock
	omitted atomic.Int64
}

// keyFailed logs why a key manager could not serve a call. Errors of providers have no part of a
// key or of an input. Errors of the key directory are the bare errors of package keys, and are
// not logged again: the directory has logged what is wrong with the key.
func (h *Handlers) keyFailed(c *Call, name, id string, err error) {
	if err == keys.ErrUnusable || err == keys.ErrUnavailable || !keys.Transient(err) && !errors.Is(err, keys.ErrUnusable) && !errors.Is(err, keys.ErrDenied) { //nolint:errorlint // the bare errors are meant
		return
	}
	now := clock.Nanos(time.Now())
	next := h.keyLog.next.Load()
	if now < next || !h.keyLog.next.CompareAndSwap(next, now+int64(keyLogInterval)) {
		h.keyLog.omitted.Add(1)
		return
	}
	h.logger.LogAttrs(c.Context, slog.LevelWarn, "a key of a key manager cannot be used",
		slog.String("operation", c.Operation.String()), slog.String("profile", name), slog.String("key", id), slog.Any("error", err),
		slog.Int64("omitted", h.keyLog.omitted.Swap(0)))
}
