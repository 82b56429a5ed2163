// SPDX-License-Identifier: Apache-2.0

//go:build race

package rawio

import "syscall"

// The race detector knows the system calls of package syscall, which the net package uses.

// Read reads from a socket, as it does without the race detector.
func Read(fd uintptr, into []byte, _ bool) (int, error)  { return syscall.Read(int(fd), into) }
func write(fd uintptr, from []byte, _ bool) (int, error) { return syscall.Write(int(fd), from) }
