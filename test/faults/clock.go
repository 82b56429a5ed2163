// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// The machine has one clock, and other programs need the right time. But each process reads the clock by a function that the kernel
// maps into its memory: __vdso_clock_gettime. In a stopped process, the program can replace that function with another one.

// shiftedClock returns the machine code of a function that replaces clock_gettime(clock, result): it asks the kernel for the time,
// and adds seconds to the time of day.
func shiftedClock(shift time.Duration) ([]byte, error) {
	if runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("found a processor of the kind %s: this fault is written only for amd64", runtime.GOARCH)
	}
	code := []byte{
		0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, 228: clock_gettime
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi: CLOCK_REALTIME is 0
		0x75, 0x07, // jnz to the end
		0x48, 0x81, 0x06, // add qword [rsi], the following four bytes
	}
	code = binary.LittleEndian.AppendUint32(code, uint32(int32(shift/time.Second)))
	return append(code, 0xc3), nil // ret
}

// clock is the replaced function in one process, with its original code.
type clock struct {
	process  int
	address  int64
	original []byte
}

// shiftClock moves the time of day of a process until the clock is put right.
func shiftClock(ctx context.Context, process int, shift time.Duration) (*clock, error) {
	code, err := shiftedClock(shift)
	if err != nil {
		return nil, err
	}
	begin, end, err := vdso(process)
	if err != nil {
		return nil, err
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", process))
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	image := make([]byte, end-begin)
	if _, err := memory.ReadAt(image, begin); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the clock of the process %d: %w", process, err)
	}
	offset, err := clockFunction(image, len(code))
	if err != nil {
		return nil, err
	}
	c := &clock{process: process, address: begin + offset, original: bytes.Clone(image[offset : offset+int64(len(code))])}
	return c, c.write(ctx, code, begin, end)
}

// restore restores the clock of the process. It does nothing if the process has ended.
func (c *clock) restore(ctx context.Context) error {
	if !runs(c.process) {
		return nil
	}
	begin, end, err := vdso(c.process)
	if err != nil {
		return err
	}
	return c.write(ctx, c.original, begin, end)
}

// write replaces the function while the process is stopped and no thread is in it.
func (c *clock) write(ctx context.Context, code []byte, begin, end int64) error {
	return runner.Eventually(ctx, 20*time.Second, "no thread reads the clock", func(context.Context) (err error) {
		if err := syscall.Kill(c.process, syscall.SIGSTOP); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, syscall.Kill(c.process, syscall.SIGCONT)) }()
		if err := stoppedOutside(c.process, begin, end); err != nil {
			return err
		}
		memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", c.process), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer memory.Close()
		_, err = memory.WriteAt(code, c.address)
		return err
	})
}

// stoppedOutside returns an error unless all threads of a process are stopped, none of them
// between two addresses.
func stoppedOutside(process int, begin, end int64) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", process))
	if err != nil || len(threads) == 0 {
		return fmt.Errorf("find the threads of the process %d: %w", process, errors.Join(err, os.ErrNotExist))
	}
	for _, thread := range threads {
		status, err := os.ReadFile(thread + "/status")
		if err != nil {
			return err
		}
		if state := statusField(string(status), "State:"); len(state) == 0 || state[0] != "T" {
			return fmt.Errorf("a thread is not stopped yet: %q", state)
		}
		call, err := os.ReadFile(thread + "/syscall")
		if err != nil {
			return err
		}
		words := strings.Fields(string(call))
		at, err := strconv.ParseUint(strings.TrimPrefix(words[len(words)-1], "0x"), 16, 64)
		if err != nil {
			return fmt.Errorf("find out where a thread is, from %q: %w", call, err)
		}
		if at >= uint64(begin) && at < uint64(end) {
			return errors.New("a thread reads the clock")
		}
	}
	return nil
}

// vdso returns where in its memory a process has the functions of the kernel.
func vdso(process int) (begin, end int64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", process))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			_, err := fmt.Sscanf(line, "%x-%x", &begin, &end)
			return begin, end, err
		}
	}
	return 0, 0, fmt.Errorf("the process %d has no vdso", process)
}

// clockFunction returns where in an image of the vdso the function begins, if it has room for
// that many bytes.
func clockFunction(image []byte, room int) (int64, error) {
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, fmt.Errorf("read the vdso: %w", err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, fmt.Errorf("read the symbols of the vdso: %w", err)
	}
	for _, each := range symbols {
		if each.Name == "__vdso_clock_gettime" {
			if each.Size < uint64(room) {
				return 0, fmt.Errorf("the function %s has %d bytes, expected %d or more", each.Name, each.Size, room)
			}
			return int64(each.Value), nil
		}
	}
	return 0, errors.New("the vdso has no function __vdso_clock_gettime")
}
