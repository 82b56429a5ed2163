// SPDX-License-Identifier: Apache-2.0

//go:build !race

package rawio

import (
	"syscall"
	"unsafe"
)

// Read reads from a socket, which does not block: it returns EAGAIN instead. If quiet, it does
// not announce the system call to Go's scheduler, as package syscall does. The first system
// call that is announced after the process was idle wakes the monitor thread of Go's runtime.
// With one caller that would be one in each call, with two switches of threads.
//
// While the monitor thread sleeps, goroutines that run for long are not interrupted, and a
// process that is never idle does not look for what has come in. So only a broker that has
// nothing but quick calls may be quiet, see Processors.Quiet of package work.
func Read(fd uintptr, into []byte, quiet bool) (int, error) {
	if !quiet {
		return syscall.Read(int(fd), into)
	}
	n, _, err := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(into))), uintptr(len(into)))
	if err != 0 {
		return 0, err
	}
	return int(n), nil
}

// write writes to a socket as [Read] reads. It may write a part of the bytes only.
func write(fd uintptr, from []byte, quiet bool) (int, error) {
	if !quiet {
		return syscall.Write(int(fd), from)
	}
	n, _, err := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(from))), uintptr(len(from)))
	if err != 0 {
		return 0, err
	}
	return int(n), nil
}
