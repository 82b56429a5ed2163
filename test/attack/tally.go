// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tally counts what happens to an attacker.
type tally struct {
	mu     sync.Mutex
	names  []string // in the order in which they were first seen
	counts map[string]int
	failed int
	first  error
}

func newTally() *tally { return &tally{counts: map[string]int{}} }

// count adds n to the count of a name.
func (t *tally) count(name string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.counts[name]; !known {
		t.names = append(t.names, name)
	}
	t.counts[name] += n
}

// call counts a call by its result.
func (t *tally) call(err error) {
	code := status.Code(err)
	t.count(code.String(), 1)
	if code != codes.OK {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.failed++; t.first == nil {
			t.first = err
		}
	}
}

// failures counts the calls that failed.
func (t *tally) failures() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// String returns all counts, with the first error of a call.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, name := range t.names {
		parts = append(parts, fmt.Sprintf("%s %d", name, t.counts[name]))
	}
	text := strings.Join(parts, ", ")
	if t.first != nil {
		text += fmt.Sprintf("; first error %q", cut(t.first.Error(), 160))
	}
	return text
}

// cut shortens a text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
