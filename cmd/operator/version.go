// SPDX-License-Identifier: Apache-2.0

package main

import "runtime/debug"

// version is set when a release is built: -ldflags "-X main.version=v1.2.3".
var version string

// programVersion is the version of this program: that of the release, else what
// the Go toolchain knows of the commit.
func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
