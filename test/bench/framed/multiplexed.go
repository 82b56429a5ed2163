// SPDX-License-Identifier: Apache-2.0

package framed

import (
	"net"
	"runtime"
	"sync"

	"github.com/crypto-broker/crypto-broker-operator/test/bench/operations"
)

// quickSize is the largest request, in bytes, that the receiving goroutine answers itself:
// to hand it to another goroutine would take longer than the operation.
const quickSize = 2 << 10

// ServeMultiplexed serves connections that carry many calls at the same time, until the
// listener is closed.
func ServeMultiplexed(listener net.Listener, service *operations.Operations) error {
	return accept(listener, func(conn net.Conn) { serveMultiplexed(conn, service) })
}

// serveMultiplexed serves a connection that carries many calls at the same time.
func serveMultiplexed(conn net.Conn, service *operations.Operations) {
	s := &multiplexed{joined: newJoined(conn), service: service, places: make(chan struct{}, 2*runtime.GOMAXPROCS(0))}
	s.serve()
}

// multiplexed is the server's end of a connection.
type multiplexed struct {
	*joined
	service *operations.Operations
	// places bounds how many calls have goroutines of their own: twice the number of
	// processors, so that the next request is read while others are served.
	places  chan struct{}
	serving sync.WaitGroup
	// buffers are the buffers of requests that goroutines have served.
	buffers sync.Pool
}

// serve answers until the client closes the connection or violates the protocol. Replies
// wait to be written together while there are further requests in the buffer.
func (s *multiplexed) serve() {
	defer s.serving.Wait()
	var in []byte
	for {
		h, err := s.receiveHeader()
		if err != nil {
			return
		}
		if h.kind == certificate || h.size > quickSize {
			err = s.hand(h)
		} else if in, err = s.receiveBody(h, in); err == nil {
			err = s.reply(h, in)
		}
		if err == nil && !s.complete() {
			err = s.flush(false)
		}
		if err != nil {
			return
		}
	}
}

// hand lets a goroutine answer a request.
func (s *multiplexed) hand(h header) error {
	s.places <- struct{}{}
	buffer, given := s.buffers.Get().(*[]byte)
	if !given {
		buffer = new([]byte)
	}
	var err error
	if *buffer, err = s.receiveBody(h, *buffer); err != nil {
		return err
	}
	s.serving.Go(func() {
		defer func() { <-s.places }()
		err := s.reply(h, *buffer)
		s.buffers.Put(buffer)
		if err == nil {
			err = s.flush(false)
		}
		if err != nil {
			_ = s.Close() // which ends serve
		}
	})
	return nil
}

func (s *multiplexed) reply(h header, request []byte) error {
	reply, err := answer(s.service, h.kind, request)
	if err != nil {
		h.kind, reply = failed, []byte(err.Error())
	}
	return s.add(h.kind, h.id, reply)
}
