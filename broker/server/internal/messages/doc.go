// SPDX-License-Identifier: Apache-2.0

// Package messages bounds the messages of clients: it has the sizes of the largest messages, and the
// pool of the buffers that messages are read into and written from.
package messages
