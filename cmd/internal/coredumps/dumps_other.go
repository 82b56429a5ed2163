// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package coredumps

import "golang.org/x/sys/unix"

// Forbid keeps the memory of this process, which has keys, out of core dumps.
func Forbid() error { return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }
