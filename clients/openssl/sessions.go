// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"container/list"
	"crypto/tls"
	"sync"
	"time"
)

// session is an SSL_SESSION that can be resumed.
type session struct {
	lib     *library
	address uintptr
	host    string
	expires time.Time // when the first certificate of the chain that was verified expires
}

func (s *session) free() {
	call(s.lib.sessionFree, s.address)
	live.sessions.Add(-1)
}

// sessionCache has the newest session of each host, the least recently used first to go.
type sessionCache struct {
	mutex  sync.Mutex
	limit  int
	byHost map[string]*list.Element
	order  *list.List // of *session, the most recently used in front
	now    func() time.Time
}

func newSessionCache(limit int) *sessionCache {
	return &sessionCache{limit: limit, byHost: map[string]*list.Element{}, order: list.New(), now: time.Now}
}

// with calls use with the session of a host, or with nil if the cache has none. The session stays allocated until use returns.
func (c *sessionCache) with(host string, use func(*session) error) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	element, ok := c.byHost[host]
	if !ok {
		return use(nil)
	}
	found := element.Value.(*session)
	if c.now().After(found.expires) {
		c.remove(element)
		return use(nil)
	}
	c.order.MoveToFront(element)
	return use(found)
}

// add stores a session, which belongs to the cache from then on.
func (c *sessionCache) add(added *session) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if element, ok := c.byHost[added.host]; ok {
		c.remove(element)
	}
	c.byHost[added.host] = c.order.PushFront(added)
	for c.order.Len() > c.limit {
		c.remove(c.order.Back())
	}
}

// clear frees all sessions, and keeps none from then on.
func (c *sessionCache) clear() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.limit = 0
	for c.order.Len() > 0 {
		c.remove(c.order.Back())
	}
}

func (c *sessionCache) remove(element *list.Element) {
	removed := c.order.Remove(element).(*session)
	delete(c.byHost, removed.host)
	removed.free()
}

// session returns the session of the connection, or nil if the peer does not allow resumption. With TLS 1.3 a session can be
// resumed once its ticket has arrived, after the handshake (RFC 8446, section 4.6.1). A connection that resumed a session has
// verified no chain. Its session expires when the resumed one does.
func (s *ssl) session(host string, state *tls.ConnectionState, resumed time.Time) *session {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	expires := resumed
	if !state.DidResume {
		expires = expiry(state)
	}
	if s.address == 0 || expires.IsZero() {
		return nil
	}
	address := call(s.lib.sslGetSession, s.address)
	if address == 0 {
		return nil
	}
	live.sessions.Add(1)
	found := &session{lib: s.lib, address: address, host: host, expires: expires}
	if int32(call(s.lib.sessionIsResumable, address)) != 1 {
		found.free()
		return nil
	}
	return found
}

// expiry returns when the first certificate of the chain that was verified expires, or the zero time if there is none.
func expiry(state *tls.ConnectionState) time.Time {
	var first time.Time
	for _, chain := range state.VerifiedChains {
		for _, certificate := range chain {
			if first.IsZero() || certificate.NotAfter.Before(first) {
				first = certificate.NotAfter
			}
		}
	}
	return first
}
