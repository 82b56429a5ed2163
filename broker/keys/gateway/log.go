// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"log/slog"
	"sync"
	"time"

	gatewayv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/gateway/v1"
)

// occasional logs at most one failure a second, and the number of failures that it did not log.
type occasional struct {
	logger *slog.Logger

	mu      sync.Mutex
	last    time.Time
	omitted int
}

// failed logs that a key could not be used. err has no part of a key.
func (o *occasional) failed(use *gatewayv1.KeyUse, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if now.Sub(o.last) < time.Second {
		o.omitted++
		return
	}
	o.logger.Warn("the key gateway did not serve a request for a call",
		"key", use.GetKeyId(), "profile", use.GetProfile(), "operation", use.GetOperation(), "error", err, "omitted", o.omitted)
	o.last, o.omitted = now, 0
}

// silent logs that the connection to a gateway has been ended. That is at most once in the time
// that its answer may take.
func (o *occasional) silent(limit time.Duration) {
	o.logger.Warn("the key gateway does not answer: connecting again", "waited", limit.String())
}
