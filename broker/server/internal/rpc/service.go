// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"log/slog"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/work"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
)

// Service has the handlers, and the settings that the methods of all services share.
type Service struct {
	*handlers.Handlers
	Workers *work.Pool
	// IdleTime is how long a client may take to send the rest of a request or to read a
	// reply.
	IdleTime time.Duration
	// Streams is a context that ends when all streams have to end.
	Streams context.Context
}

// defaultIdleTime is the IdleTime of a new service.
const defaultIdleTime = time.Minute

// NewService returns a service. The context streams ends when all streams have to end.
func NewService(streams context.Context, logger *slog.Logger, metrics *telemetry.Metrics) *Service {
	s := &Service{Handlers: handlers.NewHandlers(logger, metrics), Workers: work.NewPool(), IdleTime: defaultIdleTime, Streams: streams}
	s.InTurn = func(ctx context.Context, job func()) { s.Workers.Run(&flow.ConnOf(ctx).Jobs, job) }
	return s
}
