// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/net/http2"
)

// callWindow is the maximum number of bytes of a call that a client may send before the broker
// has read the length of the first message and has memory for it. gRPC has no option for less
// than 64 KiB, so the broker changes the first frame that gRPC sends. gRPC accepts clients that
// send less than it expects.
//
// callWindow is more than a quarter of gRPC's window, because gRPC lets the client send more only
// after it has read a quarter.
const callWindow = 24 << 10

// wideConnections is the number of connections of a caller that have gRPC's window of 64 KiB
// instead of callWindow. The larger window makes Exchange with many concurrent calls a fifth
// faster. Most callers have no more connections than this.
const wideConnections = 2

// Sizes in bytes of the parts of a SETTINGS frame (RFC 9113, sections 4.1 and 6.5.1).
const (
	frameHeader = 9
	settingSize = 6
)

// withCallWindow returns the first bytes that the broker writes on a connection, with
// SETTINGS_INITIAL_WINDOW_SIZE set to callWindow. A test fails if a version of gRPC does not
// begin with the frame SETTINGS.
func withCallWindow(wire []byte) []byte {
	if len(wire) < frameHeader || http2.FrameType(wire[3]) != http2.FrameSettings {
		return wire
	}
	wire = bytes.Clone(wire) // the buffer belongs to gRPC
	size := int(wire[0])<<16 | int(wire[1])<<8 | int(wire[2])
	settings := wire[frameHeader:min(len(wire), frameHeader+size)]
	for ; len(settings) >= settingSize; settings = settings[settingSize:] {
		if http2.SettingID(binary.BigEndian.Uint16(settings)) == http2.SettingInitialWindowSize {
			binary.BigEndian.PutUint32(settings[2:], callWindow)
		}
	}
	return wire
}
