// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Calls counts the requests that a server gets, by kind. The zero value has counted none. It is safe
// for concurrent use.
type Calls struct {
	mu sync.Mutex
	of map[string]int
}

// Add counts a request.
func (c *Calls) Add(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[kind]++
}

// Take returns what was counted since the last time, the sum and the kinds as text.
func (c *Calls) Take() (sum int, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(c.of)) {
		sum += c.of[kind]
		parts = append(parts, fmt.Sprintf("%d %s", c.of[kind], kind))
	}
	c.of = nil
	return sum, strings.Join(parts, ", ")
}
