// SPDX-License-Identifier: Apache-2.0

package providersource

// Load has the current numbers of the providers of one type.
type Load struct {
	// Usable and Unusable are the numbers of key providers that are open, and that are not open
	// because of a problem that the log has.
	Usable, Unusable int
	// Connections are open to key managers, and Busy of them have a request.
	Connections, Busy int
}

// Ready reports whether all key providers have been read once, and Run has not ended. Secrets
// and key managers may still be missing.
func (s *Source) Ready() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.read
}

// Load returns the numbers of each type in the options, even if it has no provider.
func (s *Source) Load() map[string]Load {
	all := map[string]Load{}
	for name := range s.options.Types {
		all[name] = Load{}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range s.entries {
		now := e.now.Load()
		if now.spec.Type == "" {
			continue // the watch will deliver its spec in a moment
		}
		sum := all[now.spec.Type]
		if now.provider == nil {
			sum.Unusable++
		} else {
			sum.Usable++
			for _, endpoint := range now.provider.Status() {
				sum.Connections += endpoint.Connections
				sum.Busy += endpoint.Busy
			}
		}
		all[now.spec.Type] = sum
	}
	return all
}
