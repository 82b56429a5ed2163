// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// DropStartPages releases pages of the program that only its start has used, such as tables of
// libraries and self-tests. Such pages are most of the memory of an idle broker. If the broker
// uses such a page again, the kernel reads it from its file cache.
func DropStartPages() error {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer maps.Close()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	ranges, err := unchangedPages(maps, program)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		if _, _, failed := unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, unix.MADV_DONTNEED); failed != 0 {
			return fmt.Errorf("madvise: %w", failed)
		}
	}
	return nil
}

// pages is a range of addresses.
type pages struct{ start, end uintptr }

// unchangedPages returns the pages of a file in smaps (see proc(5)) that can be read again from
// the file. They are not writable, and nothing has changed them, not even a loader or a debugger.
func unchangedPages(smaps io.Reader, file string) ([]pages, error) {
	var found []pages
	var last pages // the range that the lines describe, if it belongs to the file
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			last = pages{}
			if len(fields) < 6 || strings.Join(fields[5:], " ") != file || strings.Contains(fields[1], "w") {
				continue
			}
			start, end, _ := strings.Cut(fields[0], "-")
			first, err := strconv.ParseUint(start, 16, 64)
			if err != nil {
				return nil, fmt.Errorf("read smaps: %w", err)
			}
			behind, err := strconv.ParseUint(end, 16, 64)
			if err != nil {
				return nil, fmt.Errorf("read smaps: %w", err)
			}
			last = pages{uintptr(first), uintptr(behind)}
		case len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0" && last.end > 0:
			found = append(found, last)
			last = pages{}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read smaps: %w", err)
	}
	return found, nil
}
