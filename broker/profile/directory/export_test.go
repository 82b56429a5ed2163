// SPDX-License-Identifier: Apache-2.0

package directory

import "github.com/crypto-broker/crypto-broker-operator/broker/profile"

// Current returns the set that is served, nil while there is none.
func (s *Source) Current() *profile.Set { return s.current.Load() }
