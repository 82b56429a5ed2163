// SPDX-License-Identifier: Apache-2.0

package openssl

import "time"

// SetHandshakeTimeout sets how long a handshake of DialTLSContext may take.
func (c *Client) SetHandshakeTimeout(timeout time.Duration) { c.handshakeTimeout = timeout }

// SetClock sets the time at which sessions expire.
func (c *Client) SetClock(now func() time.Time) { c.resources.sessions.now = now }

// Live returns how many objects of OpenSSL are allocated: contexts, connections, sessions.
func Live() [3]int64 {
	return [3]int64{live.contexts.Load(), live.connections.Load(), live.sessions.Load()}
}

// Offers reports whether a client that offers protocols accepts one that the server chose. No server in the tests chooses
// another one.
func Offers(protocols []string, chosen string) (bool, error) {
	encoded, err := encodeProtocols(protocols)
	return offers(encoded, chosen), err
}
