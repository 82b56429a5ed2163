// SPDX-License-Identifier: Apache-2.0

// Package wirev0 is the wire generation of the releases before version 1. It turns their
// messages into arguments of the handlers, and results into messages. It decides nothing.
package wirev0
