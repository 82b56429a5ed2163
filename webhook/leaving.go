// SPDX-License-Identifier: Apache-2.0

package webhook

import "net/http"

// leaving tells the API server to take its next call elsewhere once done is
// closed, which means that this replica is about to end.
//
// The API server keeps one connection to a replica, and sends calls over it
// although the replica is out of the Service's endpoints. A server of net/http that
// shuts down closes a connection at the moment in which it has no call, and
// loses the call that comes in that moment. An answer with "Connection: close"
// is sent together with HTTP/2's GOAWAY (RFC 9113, section 6.8), after which a
// client sends nothing that the server does not read.
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
