// SPDX-License-Identifier: Apache-2.0

// Package stream serves the streaming methods: HashStream, EncryptStream and DecryptStream, whose
// input comes in chunks, and Exchange, which carries many calls at one time.
//
// A stream holds no more messages and replies than the share of its caller allows, see
// package flow. Its client waits until there is room.
package stream
