// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/net/http2"
)

// callWindow is how many bytes of a call a client may send before the broker has
// read its first message's length and has memory for it. gRPC has no option for less
// than 64 KiB, so the first frame that it sends is changed: where a client may send
// less than gRPC expects, gRPC has nothing to object.
//
// It is more than a quarter of what gRPC expects, because that much has to be read
// before gRPC lets the client send more.
const callWindow = 24 << 10

// wideConnections is how many connections of a caller have the 64 KiB of gRPC instead,
// which makes Exchange a fifth faster where many calls are on their way. Most callers
// have no more of them.
const wideConnections = 2

// Of the frame SETTINGS (RFC 9113, sections 4.1 and 6.5.1), in bytes.
const (
	frameHeader = 9
	settingSize = 6
)

// withCallWindow returns what a connection begins with, with SETTINGS_INITIAL_WINDOW_SIZE
// of callWindow. A test fails where that is not the first frame any more.
func withCallWindow(wire []byte) []byte {
	if len(wire) < frameHeader || http2.FrameType(wire[3]) != http2.FrameSettings {
		return wire
	}
	wire = bytes.Clone(wire) // since it is gRPC's
	size := int(wire[0])<<16 | int(wire[1])<<8 | int(wire[2])
	settings := wire[frameHeader:min(len(wire), frameHeader+size)]
	for ; len(settings) >= settingSize; settings = settings[settingSize:] {
		if http2.SettingID(binary.BigEndian.Uint16(settings)) == http2.SettingInitialWindowSize {
			binary.BigEndian.PutUint32(settings[2:], callWindow)
		}
	}
	return wire
}
