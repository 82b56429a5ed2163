// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// refusalsOf returns why operations of a profile are refused, nil where none is.
func refusalsOf(p *profile.Compiled) *[engine.Operations]string {
	var refusals *[engine.Operations]string
	for _, a := range p.Assessments() {
		if !a.Refused {
			continue
		}
		if refusals == nil {
			refusals = new([engine.Operations]string)
		}
		for op := range engine.Operations {
			if engine.Operation(op).String() == a.Operation {
				refusals[op] = a.FIPS.Reason
			}
		}
	}
	return refusals
}
