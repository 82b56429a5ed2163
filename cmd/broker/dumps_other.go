// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "golang.org/x/sys/unix"

// forbidDumps keeps the memory of this process, which has keys, out of core dumps.
func forbidDumps() error { return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }
