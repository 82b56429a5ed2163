// SPDX-License-Identifier: Apache-2.0

package limits

// Sizes in bytes of the largest messages, and of their largest parts.
const (
	// MaxMessageSize is the size of the largest message of Exchange, which may have many
	// requests, and of the largest reply of any method.
	MaxMessageSize = 4 << 20
	// MaxRequestSize is the size of the largest request of an operation. It is larger than the
	// limits of all its fields together.
	MaxRequestSize = 2 << 20
	// MaxOtherSize is the size of the largest request of other methods.
	MaxOtherSize = 64 << 10
	// MaxChunkSize is the size of the largest chunk of a stream that has replies to its
	// chunks. Such a stream holds a chunk while its client does not read.
	MaxChunkSize = 64 << 10
	// MaxChunkMessageSize is the size of the largest message of such a stream.
	MaxChunkMessageSize = MaxChunkSize + 8<<10
	// MaxInputSize is the size of the largest input of an operation, such as the bytes to
	// hash.
	MaxInputSize = 1 << 20
	// MaxHeaderSize bounds the headers of a request in bytes. Each header counts 32 bytes more
	// than its text (RFC 9113, section 6.5.2). The default of gRPC is 16 MiB.
	MaxHeaderSize = 8 << 10
)
