// SPDX-License-Identifier: Apache-2.0

// Package pemtext prepares texts in PEM that people have edited for package pem. All readers of such files and objects use it,
// so that they read the same files.
package pemtext

import "bytes"

// WithoutMark returns a text without the byte order mark that editors of Windows write at its beginning. OpenSSL reads PEM
// with it. Package pem would skip the first block without an error. The result shares the memory of the text.
func WithoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }
