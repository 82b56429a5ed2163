// SPDX-License-Identifier: Apache-2.0

// Package stream serves the methods with streams: HashStream, which hashes an input that
// comes in chunks, and Exchange, which carries many calls at one time.
//
// A stream holds no more messages and no more replies than the share of its caller allows,
// see package flow: its client waits until there is room.
package stream
