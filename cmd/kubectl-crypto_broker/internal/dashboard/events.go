// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/http"
	"time"
)

// events sends the states of the fleet, as server-sent events (HTML Living Standard, section
// 9.2). A slow page misses some states.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if !s.open() {
		http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
		return
	}
	defer s.close()
	connection := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	beats := time.NewTicker(heartbeat)
	defer beats.Stop()
	for {
		state, changed := s.current()
		if !send(w, connection, "data: ", state) {
			return
		}
		for again := false; !again; {
			select {
			case <-r.Context().Done():
				return
			case <-changed:
				again = true
			case <-beats.C:
				if !send(w, connection, ": ", []byte("nothing new")) {
					return
				}
			}
		}
	}
}

// send sends one line, unless it is empty. It returns false if the page is gone.
func send(w http.ResponseWriter, connection *http.ResponseController, field string, value []byte) bool {
	if err := connection.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return false
	}
	if len(value) > 0 {
		// JSON has no line break.
		for _, part := range [][]byte{[]byte(field), value, []byte("\n\n")} {
			if _, err := w.Write(part); err != nil {
				return false
			}
		}
	}
	return connection.Flush() == nil
}

// open counts a page, unless there are too many.
func (s *Server) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == maxStreams {
		return false
	}
	s.streams++
	return true
}

func (s *Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
}

// current returns the state, and a channel that is closed when there is another one.
func (s *Server) current() (state []byte, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.changed
}
