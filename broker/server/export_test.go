// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/served"
)

// WithIdleTime changes how long a stream waits for a client that has to send the
// next part of an input, or to read its replies.
func WithIdleTime(d time.Duration) Option {
	return func(s *Server) { s.service.IdleTime = d }
}

// Sabotage serves an empty profile of this name. Every operation with it fails, as it would because of a defect.
func (s *Server) Sabotage(name string) {
	now := s.service.Served.Load()
	next := &served.Set{Set: now.Set, Profiles: maps.Clone(now.Profiles)}
	next.Profiles[name] = served.Profile{Counters: now.Profiles["P"].Counters}
	s.service.Served.Store(next)
}

// Misuses returns the number of recent misuses of all callers.
func (s *Server) Misuses() (sum int) {
	for _, from := range s.callers {
		sum += from.Misuses()
	}
	return sum
}

// Methods are the unary methods by service.
func (s *Server) Methods() map[string][]string {
	all := map[string][]string{}
	for service, info := range s.grpc.GetServiceInfo() {
		for _, method := range info.Methods {
			if !method.IsClientStream && !method.IsServerStream {
				all[service] = append(all[service], method.Name)
			}
		}
	}
	return all
}
