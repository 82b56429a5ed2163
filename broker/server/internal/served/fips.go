// SPDX-License-Identifier: Apache-2.0

package served

import (
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// refusalsOf returns the reasons why FIPS 140-3 does not approve operations of a profile
// that a broker refuses, by operation. It returns nil if no operation is refused.
func refusalsOf(p *profile.Compiled) *[profile.OperationCount]string {
	var refusals *[profile.OperationCount]string
	for _, a := range p.Assessments() {
		if !a.Refused {
			continue
		}
		if refusals == nil {
			refusals = new([profile.OperationCount]string)
		}
		for op := range profile.OperationCount {
			if profile.Operation(op).String() == a.Operation {
				refusals[op] = a.FIPS.Reason
			}
		}
	}
	return refusals
}
