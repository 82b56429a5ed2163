// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
)

// leaving asks the API server to send its next call to another replica. It begins when done is
// closed, because this replica is about to end.
//
// The API server keeps connections to a replica, and sends calls over them although the replica
// is no longer an endpoint of the Service. A server of net/http that shuts down closes a
// connection when it has no call, and loses a call that arrives at that moment. After an answer
// with "Connection: close" (RFC 9112, section 9.6) a client sends nothing more.
func leaving(done <-chan struct{}, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
			w.Header().Set("Connection", "close")
		default:
		}
		next.ServeHTTP(w, r)
	})
}
