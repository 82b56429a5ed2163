// SPDX-License-Identifier: Apache-2.0

package kmipserver

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Connections returns how many connections to a server are established, as Linux counts them
// at the server's side.
func (s *Servers) Connections(t testing.TB, n int) int {
	t.Helper()
	_, text, err := net.SplitHostPort(s.Addresses[n])
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	const established = "01"
	clients := map[string]bool{} // if the table changes during the read, a line may appear twice
	for line := range strings.Lines(string(table)) {
		// The number of the socket, the local and the remote address, the state.
		fields := strings.Fields(line)
		if len(fields) > 3 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) && fields[3] == established {
			clients[fields[2]] = true
		}
	}
	return len(clients)
}
