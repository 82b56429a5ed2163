// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"fmt"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

// addresses returns how the status names the endpoints of a provider.
func addresses(spec *v1alpha1.KeyProviderSpec) []string {
	var all []string
	for _, endpoint := range spec.Endpoints {
		all = append(all, string(endpoint))
	}
	switch {
	case len(all) > 0:
	case spec.Type == providers.AWSKMS && spec.AWSKMS != nil:
		all = []string{"https://kms." + spec.AWSKMS.Region + ".amazonaws.com"}
	case spec.PKCS11 != nil:
		all = []string{spec.PKCS11.Module}
	}
	return all
}

// fillEndpoints fills in the answers about the endpoints. views are of gateways that have opened
// the provider.
func fillEndpoints(status *v1alpha1.KeyProviderStatus, names []string, views []*providerreport.Provider) {
	before := map[string]v1alpha1.KeyEndpointStatus{}
	for _, e := range status.Endpoints {
		before[e.Address] = e
	}
	status.Endpoints, status.Latency = nil, ""
	all, longest := 0, time.Duration(0)
	for i, name := range names {
		merged, latency := mergeEndpoint(name, i, views, before[name].Latency)
		status.Endpoints = append(status.Endpoints, merged)
		if merged.State == v1alpha1.EndpointReachable {
			all++
		}
		longest = max(longest, latency)
	}
	status.Reachable = fmt.Sprintf("%d/%d", all, len(names))
	if longest > 0 {
		status.Latency = longest.String()
	}
}

// mergeEndpoint returns the state of one endpoint in all gateways. before is the latency in the
// status.
func mergeEndpoint(name string, place int, views []*providerreport.Provider, before string) (v1alpha1.KeyEndpointStatus, time.Duration) {
	merged := v1alpha1.KeyEndpointStatus{Address: name, State: v1alpha1.EndpointUnknown}
	contacted := int32(0)
	var latency time.Duration
	for _, view := range views {
		if place >= len(view.Endpoints) {
			continue
		}
		e := &view.Endpoints[place]
		if e.Reached != nil {
			contacted++
			if *e.Reached {
				merged.ReachedBy++
			}
		}
		if e.Paused {
			merged.PausedBy++
		}
		merged.Failure = max(merged.Failure, e.Failure)
		merged.Version = max(merged.Version, e.Version)
		merged.Connections += e.Connections
		latency = max(latency, e.Latency)
	}
	switch {
	case contacted == 0:
	case merged.ReachedBy == contacted:
		merged.State = v1alpha1.EndpointReachable
	case merged.ReachedBy == 0:
		merged.State = v1alpha1.EndpointUnreachable
	default:
		merged.State = v1alpha1.EndpointPartlyReachable
	}
	if latency > 0 {
		latency = steady(before, latency)
		merged.Latency = latency.String()
	}
	return merged, latency
}

// steady returns the latency before if it is a neighbour of the new one, because a latency near a
// boundary would change all the time.
func steady(before string, latency time.Duration) time.Duration {
	old, err := time.ParseDuration(before)
	if err != nil || old*5 < latency*2 || latency*5 < old*2 {
		return latency
	}
	return old
}
