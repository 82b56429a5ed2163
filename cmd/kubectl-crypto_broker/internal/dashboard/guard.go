// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// policy lets the page load only its own files. Scripts cannot turn text into markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// guarded refuses requests that do not come from the page of the user.
func (s *Server) guarded(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer") // the address has the secret
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !s.isOwn(r.Host) {
			http.Error(w, "The address of this page has another host.", http.StatusMisdirectedRequest)
			return
		}
		// A browser names the origin of each request that another page makes for it.
		if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host || isForeign(r.Header) {
			http.Error(w, "This request comes from another page.", http.StatusForbidden)
			return
		}
		secret, _, below := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if !below || subtle.ConstantTimeCompare([]byte(secret), []byte(s.secret)) != 1 {
			http.Error(w, "There is nothing here. The command has printed the address of its page.", http.StatusNotFound)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// isOwn reports whether a host is the name of this server. If an attacker points another name to
// 127.0.0.1 (DNS rebinding), the host is that other name.
func (s *Server) isOwn(host string) bool {
	name, port, err := net.SplitHostPort(host)
	_, own, _ := net.SplitHostPort(s.listener.Addr().String()) // it is an address of this form
	return err == nil && port == own && (name == "127.0.0.1" || name == "localhost")
}

// isForeign reports whether a page of another origin loads something from this server. A user who
// enters the address, or follows a link to it, navigates, which is allowed.
func isForeign(header http.Header) bool {
	site := header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && header.Get("Sec-Fetch-Mode") != "navigate"
}
