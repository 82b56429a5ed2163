// SPDX-License-Identifier: Apache-2.0

package memorysearch

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
)

// region is writable memory of a process.
type region struct {
	from, to int64
	name     string
	locked   bool
}

// regions returns the writable memory of a process, as far as it is backed by pages.
func regions(t *testing.T, pid int) []region {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	var all []region
	writable := false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		var r region
		var access string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &r.from, &r.to, &access); n == 3 {
			if writable = strings.HasPrefix(access, "rw"); writable {
				if fields := strings.Fields(line); len(fields) > 5 {
					r.name = fields[5]
				}
				all = append(all, r)
			}
		} else if size := 0; writable && strings.HasPrefix(line, "Locked:") {
			_, _ = fmt.Sscanf(line, "Locked: %d", &size)
			all[len(all)-1].locked = size > 0
		}
	}
	return all
}

// Search returns how many of the secrets are in locked memory of a process, and which are in other
// memory, with their numbers. Only root can read the memory of a program that forbids dumps.
func Search(t *testing.T, pid int, secrets [][]byte) (locked int, elsewhere map[string]int) {
	t.Helper()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = memory.Close() }() // it was only read
	elsewhere = map[string]int{}
	found := map[int]bool{}
	for _, r := range regions(t, pid) {
		const step, overlap = 1 << 20, 256
		buffer := make([]byte, step+overlap)
		for at := r.from; at < r.to; at += step {
			n, err := memory.ReadAt(buffer[:min(step+overlap, r.to-at)], at)
			if err != nil && n == 0 {
				continue // pages of a device
			}
			for i, secret := range secrets {
				count := bytes.Count(buffer[:n], secret)
				if count > 0 && r.locked {
					found[i] = true
				} else if count > 0 {
					elsewhere[fmt.Sprintf("secret %d in %s", i, r.name)] += count
				}
			}
		}
	}
	return len(found), elsewhere
}

// Forms returns data keys and how the key manager writes them.
func Forms(dataKeys [][]byte) (all [][]byte) {
	for _, dataKey := range dataKeys {
		all = append(all, dataKey, []byte(base64.StdEncoding.EncodeToString(dataKey)[:40]))
	}
	return all
}
