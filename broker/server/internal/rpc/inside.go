// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/status"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/handlers"
)

// RunInside runs an operation for a part of the broker itself, with the same workers, metrics,
// audit record and span as a call through a socket. ctx is a context of [flow.Conn.Inside], and
// the part holds a slot of that connection. size is the size of the input in bytes. If serve
// succeeds, the part has to overwrite the secrets of the result.
func (s *Service) RunInside(ctx context.Context, op profile.Operation, size int, serve func(*handlers.Call) error) (err error) {
	started := time.Now()
	s.Metrics.Begin()
	c := &handlers.Call{Operation: op, Context: ctx, RequestSize: size}
	defer func() {
		if err = s.Record(c, err); err != nil {
			c.Overwrite()
		}
		s.Ended(c, status.Code(err), started, time.Now())
	}()
	run := func() (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = s.Panicked(op.String(), cause)
			}
		}()
		return serve(c)
	}
	conn := flow.ConnOf(ctx)
	if size <= QuickSize(op) {
		s.Workers.NoteQuickCall(conn.Caller.Calls(), started)
		c.MayWait = true
		return run()
	}
	s.Workers.Run(&conn.Jobs, func() {
		if err = ctx.Err(); err != nil {
			err = status.FromContextError(err).Err()
			return
		}
		err = run()
	})
	if errors.Is(err, handlers.ErrWaits) { // a worker must not wait, but this goroutine may
		c.MayWait = true
		err = run()
	}
	return err
}
