// SPDX-License-Identifier: Apache-2.0

package providersource

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

// Report returns the state of all providers, without names.
func (s *Source) Report() *providerreport.Report {
	report := &providerreport.Report{Providers: []providerreport.Provider{}}
	for _, now := range s.states() {
		p := providerreport.Provider{
			UID: now.version.uid, Generation: now.version.generation, Problem: now.reason, Detail: now.detail[:min(len(now.detail), providerreport.MaxDetail)],
			SecretVersion: now.secretVersion,
		}
		if now.provider != nil && now.reason == "" {
			for _, status := range now.provider.Status() {
				p.Endpoints = append(p.Endpoints, endpointOf(&status))
			}
		}
		report.Providers = append(report.Providers, p)
	}
	return report
}

func endpointOf(s *pool.Status) providerreport.Endpoint {
	e := providerreport.Endpoint{
		Failure: string(s.Failure), Paused: !s.Usable, Version: s.Version, Latency: providerreport.RoundLatency(s.Latency),
		Connections: int32(min(s.Connections, math.MaxInt32)), //nolint:gosec // bounded
	}
	if s.Reach != pool.Unknown {
		reached := s.Reach == pool.Reachable
		e.Reached = &reached
	}
	return e
}

// Endpoints are the endpoints of one open provider.
type Endpoints struct {
	UID    types.UID
	Status []pool.Status
}

// Endpoints returns the endpoints of all open providers, in the order of the UIDs.
func (s *Source) Endpoints() []Endpoints {
	var all []Endpoints
	for _, now := range s.states() {
		if now.provider != nil {
			all = append(all, Endpoints{now.version.uid, now.provider.Status()})
		}
	}
	return all
}

// states returns the states of all entries, in the order of the UIDs.
func (s *Source) states() []*state {
	s.mu.RLock()
	all := make([]*state, 0, len(s.entries))
	for _, e := range s.entries {
		if now := e.now.Load(); now.version.uid != "" {
			all = append(all, now)
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(all, func(a, b *state) int { return cmp.Compare(a.version.uid, b.version.uid) })
	return all
}
