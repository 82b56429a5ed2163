// SPDX-License-Identifier: Apache-2.0

// Package wirev1 is the wire generation cryptobroker.v1. It turns its messages into
// arguments of the handlers, and results into messages. It decides nothing.
package wirev1
