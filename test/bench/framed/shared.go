// SPDX-License-Identifier: Apache-2.0

package framed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
)

// shared is one connection to ServeMultiplexed, for many callers.
type shared struct {
	*joined
	// places has a place for each caller. The caller's number is the id of its calls.
	places []place
	// calling is the number of callers that wait for replies.
	calling atomic.Int32
	// The caller that reads for all callers holds turn. A separate goroutine for reading would cost two wakes for each reply of a
	// single caller: its own and the caller's.
	turn chan struct{}
}

// place is where a caller waits.
type place struct {
	reply chan message
	in    []byte // reused for each reply
}

// message is a reply.
type message struct {
	kind byte
	body []byte
}

// DialShared returns clients for a number of callers, which share one connection. The
// returned function closes it.
func DialShared(socket string, callers int) ([]*Client, func() error, error) {
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "unix", socket)
	if err != nil {
		return nil, nil, err
	}
	clients, end := share(conn, callers)
	return clients, end, nil
}

// share returns clients for a number of callers, which share a connection, and a function
// that closes it.
func share(conn net.Conn, callers int) ([]*Client, func() error) {
	s := &shared{joined: newJoined(conn), places: make([]place, callers), turn: make(chan struct{}, 1)}
	clients := make([]*Client, callers)
	for i := range clients {
		s.places[i].reply = make(chan message, 1)
		clients[i] = &Client{func(kind byte, request []byte) (byte, []byte, error) { return s.call(i, kind, request) }}
	}
	return clients, conn.Close
}

func (s *shared) call(caller int, kind byte, request []byte) (byte, []byte, error) {
	others := s.calling.Add(1) > 1
	defer s.calling.Add(-1)
	if err := s.add(kind, uint32(caller), request); err != nil {
		return 0, nil, err
	}
	if err := s.flush(others); err != nil {
		return 0, nil, err
	}
	reply := s.places[caller].reply
	select {
	case got := <-reply:
		return got.kind, got.body, nil
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	}
	// Callers with a reply return. The next caller without a reply gets the turn, and finds
	// the same error.
	for {
		select {
		case got := <-reply:
			return got.kind, got.body, nil
		default:
		}
		if err := s.receive(); err != nil {
			_ = s.Close() // after an error, no caller may wait for a reply that never comes
			return 0, nil, err
		}
	}
}

// receive hands out a reply, and further replies that are already in the buffer.
func (s *shared) receive() error {
	for {
		h, err := s.receiveHeader()
		if err != nil {
			return err
		}
		if int(h.id) >= len(s.places) {
			return fmt.Errorf("a reply has the id %d, which no call had", h.id)
		}
		p := &s.places[h.id]
		if p.in, err = s.receiveBody(h, p.in); err != nil {
			return err
		}
		select {
		case p.reply <- message{h.kind, p.in}:
		default:
			return errors.New("a caller has two replies")
		}
		if !s.complete() {
			return nil
		}
	}
}
