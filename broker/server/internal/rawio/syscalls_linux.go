// SPDX-License-Identifier: Apache-2.0

//go:build !race

package rawio

import (
	"syscall"
	"unsafe"
)

// Read reads from a non-blocking socket. It returns EAGAIN if there is no data. If quiet is true,
// it makes the system call without telling Go's scheduler, unlike package syscall. After the
// process was idle, the first system call that the scheduler knows of wakes the monitor thread of
// Go's runtime. With one caller that would happen in each call, and cost two switches of threads.
//
// While the monitor thread sleeps, long-running goroutines are not interrupted, and a process
// that is never idle does not notice new data. So only a broker that serves only quick calls may
// be quiet, see Processors.Quiet of package work.
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
