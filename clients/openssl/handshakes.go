// SPDX-License-Identifier: Apache-2.0

package openssl

import "sync"

// manyHandshakes is how many handshakes at one time leave so much free memory in C that it is worth returning it.
const manyHandshakes = 8

// handshakes counts the handshakes that are running. A handshake takes about 50 KiB in C for a moment. The memory of the
// connection, which stays, is allocated between, so that the C library returns nothing to the system by itself.
type handshakes struct {
	returnMemory func()

	mutex         sync.Mutex
	running, most int
}

// begin counts a handshake until its end. At the end of the last of many, free memory is returned to the system.
func (h *handshakes) begin() (end func()) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.running++
	h.most = max(h.most, h.running)
	return h.end
}

func (h *handshakes) end() {
	h.mutex.Lock()
	h.running--
	worthwhile := h.running == 0 && h.most >= manyHandshakes
	if h.running == 0 {
		h.most = 0
	}
	h.mutex.Unlock()
	if worthwhile {
		h.returnMemory()
	}
}
