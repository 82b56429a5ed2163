// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"strings"
	"testing"
)

func TestOnlyPagesThatAreAsInTheFileAreDropped(t *testing.T) {
	const smaps = `00400000-00ba4000 r-xp 00000000 fe:01 12 /broker
Rss: 100 kB
Anonymous: 0 kB
00ba4000-014bf000 r--p 007a4000 fe:01 12 /broker
Anonymous:             0 kB
014bf000-01500000 r--p 010bf000 fe:01 12 /broker
Anonymous:            16 kB
01500000-01600000 rw-p 01100000 fe:01 12 /broker
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:01 13 /lib/other
Anonymous:             0 kB
7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0
Anonymous:             0 kB
`
	got, err := unchangedPages(strings.NewReader(smaps), "/broker")
	if want := []pages{{0x400000, 0xba4000}, {0xba4000, 0x14bf000}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v %v, want %v", got, err, want)
	}
}
