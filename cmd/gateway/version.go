// SPDX-License-Identifier: Apache-2.0

package main

// version is set when a release is built: -ldflags "-X main.version=v1.2.3".
var version string
