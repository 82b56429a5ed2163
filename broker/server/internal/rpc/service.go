// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"log/slog"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/work"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

// Service is what the methods of all services need beside their handlers.
type Service struct {
	*handlers.Handlers
	Workers *work.Pool
	// IdleTime is how long a client may take with what it has begun.
	IdleTime time.Duration
	// Streams ends when streams have to.
	Streams context.Context
}

// defaultIdleTime bounds how long a stream waits for a client that has begun
// something and does not go on with it.
const defaultIdleTime = time.Minute

// NewService returns what methods need. The context ends when their streams have to.
func NewService(streams context.Context, logger *slog.Logger, metrics *telemetry.Metrics) *Service {
	return &Service{Handlers: handlers.NewHandlers(logger, metrics), Workers: work.NewPool(), IdleTime: defaultIdleTime, Streams: streams}
}
