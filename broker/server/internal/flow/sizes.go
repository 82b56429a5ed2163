// SPDX-License-Identifier: Apache-2.0

package flow

// The largest messages in bytes, by method, and the largest parts of them.
const (
	// MaxMessageSize is for Exchange, whose messages may have many requests, and for
	// all replies.
	MaxMessageSize = 4 << 20
	// MaxRequestSize is the limit of the wire contract. It is more than all fields of a
	// request together may have.
	MaxRequestSize = 2 << 20
	// MaxOtherSize is for methods that are no operation of a profile.
	MaxOtherSize = 64 << 10
	// MaxInputSize is for the field of a request that has what an operation works on.
	MaxInputSize = 1 << 20
	// MaxHeaderSize bounds the headers of a request in bytes, each with 32 more (RFC
	// 9113, section 6.5.2); gRPC's own limit is 16 MiB.
	MaxHeaderSize = 8 << 10
)
