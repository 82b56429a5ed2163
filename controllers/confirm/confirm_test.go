// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// broker starts a server with the handler, and returns its address.
func broker(t *testing.T, handler http.HandlerFunc) netip.AddrPort {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, body) }
}

func TestABrokersAnswerIsRead(t *testing.T) {
	at := broker(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/profiles" || len(r.Cookies()) > 0 || r.Header.Get("Authorization") != "" {
			t.Errorf("unexpected request %s %s with %v", r.Method, r.URL, r.Header)
		}
		_, _ = fmt.Fprintf(w, `{"digest":%q,"revision":7,"since":"2026-11-20T12:00:00.123Z","reason":"Loaded"}`, digest)
	})
	client := NewLoopbackClient()
	t.Cleanup(client.Close)
	answer, err := client.Ask(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	want := Answer{Digest: digest, Revision: 7, Since: time.Date(2026, 11, 20, 12, 0, 0, 123e6, time.UTC), Reason: "Loaded"}
	if answer != want {
		t.Fatalf("found %+v, expected %+v", answer, want)
	}
}

func TestABrokerTellsWhichProfilesItHasOutOfService(t *testing.T) {
	client := NewLoopbackClient()
	t.Cleanup(client.Close)
	one := `{"profile":"P","since":"2026-11-20T12:00:00.123Z"}`
	for sentence, list := range map[string]string{"one": one, "more than are read": one + strings.Repeat(","+one, 20)} {
		t.Run(sentence, func(t *testing.T) {
			answer, err := client.Ask(t.Context(), broker(t, text(`{"digest":"`+digest+`","reason":"ProfilesRejected","withdrawn":[`+list+`]}`)))
			if want := (Withdrawn{"P", time.Date(2026, 11, 20, 12, 0, 0, 123e6, time.UTC)}); err != nil || answer.Withdrawn[0] != want {
				t.Fatalf("found %+v, %v", answer, err)
			}
		})
	}
}

func TestABrokerWithoutASetSaysSo(t *testing.T) {
	client := NewLoopbackClient()
	t.Cleanup(client.Close)
	answer, err := client.Ask(t.Context(), broker(t, text(`{"digest":"","revision":0,"since":"0001-01-01T00:00:00Z","reason":"NoProfiles"}`)))
	if err != nil || answer.Digest != "" || answer.Reason != "NoProfiles" {
		t.Fatalf("found %+v, %v", answer, err)
	}
}

func TestWhatIsNoBrokersAnswerIsAnError(t *testing.T) {
	reached := false
	elsewhere := broker(t, func(http.ResponseWriter, *http.Request) { reached = true })
	tests := map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+elsewhere.String(), http.StatusFound)
		}, "HTTP status 302"},
		"another status":                     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }, "HTTP status 418"},
		"a body that never ends":             {text(`{"digest":"` + strings.Repeat("a", MaxBody) + `"}`), "more than 8192 bytes"},
		"no JSON":                            {text("<html>"), "not the expected JSON"},
		"a digest of another kind":           {text(`{"digest":"md5:00","reason":"Loaded"}`), "that no broker writes"},
		"a digest in capitals":               {text(`{"digest":"` + strings.ToUpper(digest) + `","reason":"Loaded"}`), "that no broker writes"},
		"a reason that would forge messages": {text(`{"digest":"` + digest + `","reason":"Loaded. Ignore that"}`), "that no broker writes"},
		"a negative revision":                {text(`{"digest":"` + digest + `","reason":"Loaded","revision":-1}`), "that no broker writes"},
		"headers without end":                {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 3*MaxBody)) }, "ask the broker"},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			client := NewLoopbackClient()
			t.Cleanup(client.Close)
			answer, err := client.Ask(t.Context(), broker(t, test.handler))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("found %+v, %v, expected an error with %q", answer, err, test.want)
			}
		})
	}
	if reached {
		t.Error("a redirect was followed")
	}
}

func TestABrokerThatDoesNotAnswerTakesASecond(t *testing.T) {
	release := make(chan struct{})
	at := broker(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	client := NewLoopbackClient()
	t.Cleanup(client.Close)
	if _, err := client.Ask(t.Context(), at); err == nil || !strings.Contains(err.Error(), "no answer within 1s") {
		t.Errorf("found %v", err)
	}
}

func TestOnlyAddressesOfPodsAreAsked(t *testing.T) {
	tests := map[string]struct {
		client  *Client
		address netip.AddrPort
	}{
		"loopback":                    {NewClient(), netip.MustParseAddrPort("127.0.0.1:9470")},
		"loopback, mapped":            {NewClient(), netip.MustParseAddrPort("[::ffff:127.0.0.1]:9470")},
		"loopback of IPv6":            {NewClient(), netip.MustParseAddrPort("[::1]:9470")},
		"the metadata service":        {NewClient(), netip.MustParseAddrPort("169.254.169.254:9470")},
		"multicast":                   {NewClient(), netip.MustParseAddrPort("224.0.0.1:9470")},
		"unspecified":                 {NewClient(), netip.MustParseAddrPort("0.0.0.0:9470")},
		"no address":                  {NewClient(), netip.AddrPort{}},
		"a well-known port":           {NewClient(), netip.MustParseAddrPort("10.0.0.1:443")},
		"the tests' client elsewhere": {NewLoopbackClient(), netip.MustParseAddrPort("10.0.0.1:9470")},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // a connection attempt anyway would give another error
			_, err := test.client.Ask(ctx, test.address)
			if err == nil || strings.Contains(err.Error(), "canceled") {
				t.Fatalf("found %v, expected a refusal to ask", err)
			}
		})
	}
}
