// SPDX-License-Identifier: Apache-2.0

package brokers

import (
	"io"
	"net/http"
	"regexp"
)

// proxied matches the path of a question to a pod through the API server.
var proxied = regexp.MustCompile(`/api/v1/namespaces/[^/]+/pods/[^/]+/proxy/`)

// Bound returns a transport that ends each answer of a pod after a little more than the longest
// answer of a broker. Any pod can claim to have a broker and send an endless answer, and
// client-go reads errors into memory.
func Bound(inner http.RoundTripper) http.RoundTripper { return bound{inner} }

type bound struct{ inner http.RoundTripper }

func (b bound) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.inner.RoundTrip(request)
	if err == nil && proxied.MatchString(request.URL.Path) {
		response.Body = limited{io.LimitReader(response.Body, maxUses+1), response.Body}
	}
	return response, err
}

// limited is a body that ends after a number of bytes.
type limited struct {
	io.Reader
	io.Closer
}

// WrappedRoundTripper returns the wrapped transport, which client-go looks for.
func (b bound) WrappedRoundTripper() http.RoundTripper { return b.inner }
