// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package resources

import "golang.org/x/sys/unix"

// ForbidDumps keeps the memory of this process, which has keys, out of core dumps.
func ForbidDumps() error { return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }
