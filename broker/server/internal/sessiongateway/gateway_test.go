// SPDX-License-Identifier: Apache-2.0

package sessiongateway

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/sessionclient"
)

// versions are the client ids by the version of the protocol that they select.
var versions = map[string]string{"session-v1": "", "session-v2": "shop-1"}

// arrived has the parts of a request that the application received.
type arrived struct {
	method, host, uri, body string
	headers                 http.Header
}

// next returns the request that the application received. The client has already received the answer.
func next(t testing.TB, requests <-chan arrived) arrived {
	t.Helper()
	select {
	case got := <-requests:
		return got
	default:
		t.Fatal("the application got no request")
		return arrived{}
	}
}

// recording is an application that records its requests and answers in upper case.
func recording(to chan<- arrived) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		to <- arrived{r.Method, r.Host, r.RequestURI, string(body), r.Header}
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Location", "/secret")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, strings.ToUpper(string(body)))
	}
}

func TestAnApplicationThatKnowsNothingServesSessions(t *testing.T) {
	for version, clientID := range versions {
		for _, h2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %t", version, h2), func(t *testing.T) {
				requests := make(chan arrived, 1)
				f := start(t, recording(requests))
				c := connect(t, f, clientID, h2)
				for sentence, test := range map[string]struct{ method, path, body, contentType string }{
					"JSON":                      {"POST", "/transaction/purchase", `{"amount":5}`, "application/json"},
					"bytes":                     {"PUT", "/a", "\x00\xffbytes", "application/octet-stream"},
					"a large body":              {"POST", "/a", strings.Repeat("large ", 120<<10), "application/octet-stream"},
					"no body":                   {"GET", "/a/", "", ""},
					"a path with escapes":       {"DELETE", "/a%2Cb/%7ex", "", ""},
					"a path not in normal form": {"POST", "/b/../a/./c", "x", "application/octet-stream"},
				} {
					t.Run(sentence, func(t *testing.T) {
						answer, body := c.Do(c.Request(test.method, test.path, test.body))
						text, err := c.Read(test.path, answer, body)
						if err != nil {
							t.Fatal(err)
						}
						if want := strings.ToUpper(test.body); text != want || answer.StatusCode != http.StatusCreated {
							t.Errorf("%s: the client reads %.100q, want %.100q", answer.Status, text, want)
						}
						if wantProto := map[bool]int{false: 1, true: 2}[h2]; answer.ProtoMajor != wantProto {
							t.Errorf("the answer came by %s", answer.Proto)
						}
						got := next(t, requests)
						want := map[string]string{"/a%2Cb/%7ex": "/a%2Cb/~x", "/b/../a/./c": "/a/c"}[test.path]
						if want == "" {
							want = test.path
						}
						if got.method != test.method || got.uri != want || got.body != test.body {
							t.Errorf("the application got %s %s %.100q", got.method, got.uri, got.body)
						}
						for name, want := range map[string]string{
							"X-Session-Id": c.ID, "X-Session-Client-Id": clientID, "X-Session-Protocol": version, "Content-Type": test.contentType,
						} {
							if got := got.headers.Get(name); got != want {
								t.Errorf("the application got %s: %q, want %q", name, got, want)
							}
						}
					})
				}
			})
		}
	}
}

func TestNothingOfTheApplicationsHeadersLeavesWithAnEncryptedReply(t *testing.T) {
	f := start(t, recording(make(chan arrived, 1)))
	c := connect(t, f, "", false)
	answer, _ := c.Do(c.Request(http.MethodPost, "/a", "x"))
	if answer.Header.Get("Set-Cookie")+answer.Header.Get("Location") != "" || answer.Header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("the client gets %v", answer.Header)
	}
	if timing := answer.Header.Get("Server-Timing"); !strings.HasPrefix(timing, "open;dur=") || !strings.Contains(timing, "app;dur=") {
		t.Errorf("the client gets Server-Timing: %s", timing)
	}
}

// hostile are headers with which a client could set its own identity, or another path.
var hostile = http.Header{
	"X-Session-Id": {"S-1", "S-2"}, "X-Session-Client-Id": {"admin"}, "X-Session-Protocol": {"session-v2"},
	"X_session_id": {"S-1"}, "X-Session_id": {"S-1"}, "X_SESSION_CLIENT_ID": {"admin"}, "x-session-id": {"S-3"},
	"Connection": {"X-Session-Id, Authorization"}, "Te": {"trailers"}, "X-Original-Url": {"/admin"}, "X-Rewrite-Url": {"/admin"},
	"X-Http-Method-Override": {"DELETE"}, "X-Forwarded-Prefix": {"/admin"}, "Content-Encoding": {"gzip"}, "Upgrade": {"websocket"},
	"Authorization": {"Bearer t"}, "Cookie": {"a=b"}, "X-Forwarded-For": {"192.0.2.1"},
}

func TestTheApplicationGetsNoOtherHeadersThanTheListed(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP/2 %t", h2), func(t *testing.T) {
			requests := make(chan arrived, 1)
			f := start(t, recording(requests))
			c := connect(t, f, "", h2)
			encrypted := c.Request(http.MethodPost, "/a", "x")
			plain := must(http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/healthz", nil))
			for _, r := range []*http.Request{encrypted, plain} {
				for name, values := range hostile {
					if h2 && (name == "Connection" || name == "Upgrade") { // HTTP/2 does not have these headers
						continue
					}
					r.Header[name] = values
				}
			}
			// Trailers come after a body of unknown size.
			encrypted.ContentLength, encrypted.Trailer = -1, http.Header{"X-Session-Id": {"S-4"}}
			if answer, body := c.Do(encrypted); answer.StatusCode != http.StatusCreated {
				t.Fatalf("%s: %s", answer.Status, body)
			}
			common := http.Header{"Authorization": {"Bearer t"}, "Cookie": {"a=b"}, "X-Forwarded-For": {"192.0.2.1, 127.0.0.1"}, "User-Agent": {"Go-http-client/1.1"}}
			if h2 {
				common.Set("User-Agent", "Go-http-client/2.0")
			}
			want := common.Clone()
			want.Set("X-Session-Id", c.ID)
			want.Set("X-Session-Protocol", "session-v1")
			want.Set("Content-Type", "application/octet-stream")
			want.Set("Content-Length", "1")
			if got := next(t, requests).headers; !reflect.DeepEqual(got, want) {
				t.Errorf("the application got\n%v\nof an encrypted request, want\n%v", got, want)
			}
			c.Do(plain)
			if got := next(t, requests).headers; !reflect.DeepEqual(got, common) {
				t.Errorf("the application got\n%v\nof a plain request, want\n%v", got, common)
			}
		})
	}
}

func TestAPlainRequestArrivesOnlyAtListedPaths(t *testing.T) {
	requests := make(chan arrived, 1)
	f := start(t, recording(requests))
	c := connect(t, f, "", false)
	for sentence, test := range map[string]struct {
		method, uri, body string
		want              string // the value that arrives, empty if none does
	}{
		"a listed path":                         {"GET", "/healthz", "", "GET /healthz"},
		"HEAD of a listed path":                 {"HEAD", "/healthz", "", "HEAD /healthz"},
		"a listed path in another form":         {"GET", "/x/../%68ealthz", "", "GET /healthz"},
		"a listed path with a query":            {"GET", "/healthz?all", "", ""},
		"a listed path with a slash":            {"GET", "/healthz/", "", ""},
		"a listed path and more":                {"GET", "/healthz/../transaction", "", ""},
		"the same with escaped dots":            {"GET", "/healthz/%2e%2e/transaction", "", ""},
		"the same with an escaped slash":        {"GET", "/healthz%2f..%2ftransaction", "", ""},
		"the same with a backslash":             {"GET", `/healthz\..\transaction`, "", ""},
		"the same with a parameter":             {"GET", "/healthz;/../transaction", "", ""},
		"an empty segment":                      {"GET", "//healthz", "", ""},
		"an absolute URI of a listed path":      {"GET", "http://other/healthz", "", "GET /healthz"},
		"one of a path that is not listed":      {"GET", "http://other/healthz/x", "", ""},
		"one that has the path as its host":     {"GET", "http://healthz", "", ""},
		"one with a query":                      {"GET", "http://other/healthz?all", "", ""},
		"one with a fragment":                   {"GET", "http://other/healthz#all", "", ""},
		"one without a host":                    {"GET", "http:///healthz", "", ""},
		"one with a user":                       {"GET", "http://other@shop/healthz", "", ""},
		"one of another scheme":                 {"GET", "ftp://other/healthz", "", ""},
		"one in the path of another":            {"GET", "http:/x://other/healthz", "", ""},
		"another method":                        {"POST", "/healthz", "", ""},
		"a body":                                {"GET", "/healthz", "x", ""},
		"a path that is not listed":             {"GET", "/transaction/purchase", "", ""},
		"the paths of the session, with others": {"GET", "/session/init/x", "", ""},
		"an asterisk":                           {"OPTIONS", "*", "", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := must(http.NewRequestWithContext(t.Context(), test.method, c.URL, strings.NewReader(test.body)))
			answer, body := sendTarget(t, f.address, test.uri, r)
			if test.want == "" {
				if answer.StatusCode != http.StatusForbidden || string(body) != `{"error":"ENCRYPTION_REQUIRED"}` {
					t.Errorf("%s: %s", answer.Status, body)
				}
				return
			}
			if got := next(t, requests); got.method+" "+got.uri != test.want || answer.StatusCode != http.StatusCreated {
				t.Errorf("%s: the application got %s %s", answer.Status, got.method, got.uri)
			}
		})
	}
	if len(requests) > 0 {
		t.Errorf("the application got %v", <-requests)
	}
}

// A reply to HEAD has the size of the reply to GET, or none (RFC 9110, section 8.6).
func TestAPlainReplyToHEADHasTheSizeThatTheApplicationSays(t *testing.T) {
	for _, size := range []string{"1234", "0", ""} {
		f := start(t, func(w http.ResponseWriter, _ *http.Request) {
			if size != "" {
				w.Header().Set("Content-Length", size)
			}
		})
		for _, h2 := range []bool{false, true} {
			c := sessionclient.New(t, "http://"+f.address, h2)
			answer, body := c.Do(must(http.NewRequestWithContext(t.Context(), http.MethodHead, c.URL+"/healthz", nil)))
			if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Length") != size || len(body) > 0 {
				t.Errorf("HTTP/2 %t: found the size %q with %s, expected %q", h2, answer.Header.Get("Content-Length"), answer.Status, size)
			}
		}
	}
}

// A client that uses the gateway as its proxy sends absolute URIs. The host of the URI is the host of the request.
func TestARequestMayNameAnAbsoluteURI(t *testing.T) {
	for version, clientID := range versions {
		t.Run(version, func(t *testing.T) {
			requests := make(chan arrived, 1)
			f := start(t, recording(requests))
			c := sessionclient.New(t, "http://shop.example", false)
			c.HTTP.Transport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: f.address})
			c.Connect(clientID)
			for path, want := range map[string]string{"/transaction/purchase": "/transaction/purchase", "/b/../a": "/a", "/": "/"} {
				r := c.Request(http.MethodPost, path, "buy")
				r.URL.Opaque = "//shop.example" + path
				answer, body := c.Do(r)
				if text, err := c.Read(path, answer, body); err != nil || text != "BUY" {
					t.Errorf("%s: the client reads %q (%v)", path, text, err)
				}
				if got := next(t, requests); got.uri != want || got.host != "shop.example" || got.body != "buy" {
					t.Errorf("the application got %s %q of the host %q", got.uri, got.body, got.host)
				}
			}
			r := c.Request(http.MethodPost, "/", "buy")
			if r.URL.Opaque = "//shop.example/other"; version == "session-v1" {
				if answer, _ := c.Do(r); answer.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s: the path is another one than the client has authenticated", answer.Status)
				}
			}
		})
	}
}

func TestARefusedRequestHasOneAnswer(t *testing.T) {
	requests := make(chan arrived, 1)
	f := start(t, recording(requests))
	for version, clientID := range versions {
		c := connect(t, f, clientID, false)
		for sentence, change := range map[string]func(r *http.Request) *http.Request{
			"an unknown session": func(r *http.Request) *http.Request {
				r.Header.Set("X-Kid", "session:S-00000000000000000000000000000000")
				return r
			},
			"no session":     func(r *http.Request) *http.Request { r.Header.Del("X-Kid"); return r },
			"another cipher": func(r *http.Request) *http.Request { r.Header.Set("X-Enc-Alg", "A128GCM"); return r },
			"a header twice": func(r *http.Request) *http.Request { r.Header.Add("X-Kid", r.Header.Get("X-Kid")); return r },
			"another body": func(r *http.Request) *http.Request {
				r.Body = io.NopCloser(strings.NewReader("AAAA"))
				r.ContentLength = 4
				return r
			},
			"a query":         func(r *http.Request) *http.Request { r.URL.Opaque += "?a=b"; return r },
			"an unclear path": func(r *http.Request) *http.Request { r.URL.Opaque += "//x"; return r },
			"an old time": func(*http.Request) *http.Request {
				return c.RequestAt(time.Now().Add(-6*time.Minute), "POST", "/a", "x")
			},
			"headers of both versions": func(r *http.Request) *http.Request {
				r.Header.Set("X-Nonce", "n")
				r.Header.Set("X-Idempotency-Key", "1.n")
				return r
			},
			"a request without encryption to a listed path": func(*http.Request) *http.Request {
				r := must(http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/healthz", nil))
				r.Header.Set("X-Kid", "")
				return r
			},
		} {
			t.Run(version+", "+sentence, func(t *testing.T) {
				answer, body := c.Do(change(c.Request(http.MethodPost, "/a", "buy")))
				if answer.StatusCode != http.StatusUnauthorized || string(body) != `{"error":"SESSION_EXPIRED"}` || len(requests) > 0 {
					t.Errorf("%s: %s", answer.Status, body)
				}
				if answer.Header.Get("Server-Timing") != "" {
					t.Error("the answer tells how long the steps took")
				}
			})
		}
		t.Run(version+", a request that was opened", func(t *testing.T) {
			r := c.Request(http.MethodPost, "/a", "buy")
			again := r.Clone(t.Context())
			again.Body = must(r.GetBody())
			c.Do(r)
			next(t, requests)
			if answer, body := c.Do(again); answer.StatusCode != http.StatusUnauthorized || string(body) != `{"error":"SESSION_EXPIRED"}` {
				t.Errorf("%s: %s", answer.Status, body)
			}
		})
	}
}

func TestAWrongBeginningIsACryptoError(t *testing.T) {
	f := start(t, recording(make(chan arrived, 1)))
	c := f.client(t, false)
	for sentence, change := range map[string]func(r *http.Request){
		"a key that is no point": func(*http.Request) {},
		"no JSON":                func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{")), 1 },
		"another key agreement": func(r *http.Request) {
			text := strings.Replace(string(must(io.ReadAll(r.Body))), "ECDH_P256", "HPKE_XWING", 1)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		},
		"no time": func(r *http.Request) { r.Header.Del("X-Timestamp") },
	} {
		t.Run(sentence, func(t *testing.T) {
			r := c.InitRequest("AAAA")
			change(r)
			if answer, body := c.Do(r); answer.StatusCode != http.StatusBadRequest || string(body) != `{"error":"CRYPTO_ERROR"}` {
				t.Errorf("%s: %s", answer.Status, body)
			}
		})
	}
}

func TestAnyNumberOfSecondsIsClampedToTheLifetimesOfTheProfile(t *testing.T) {
	f := start(t, recording(make(chan arrived, 1)))
	for asked, lifetime := range map[string]int64{
		"1800": 1800, "1800.0": 1800, "1.8e3": 1800, "1800.9": 1800, "299": 300, "-1": 300, "-1e300": 300, "3601": 3600, "2147483648": 3600, "1e300": 3600,
	} {
		t.Run(asked, func(t *testing.T) {
			client, key := f.client(t, false), must(ecdh.P256().GenerateKey(rand.Reader))
			r := client.InitRequest(base64.StdEncoding.EncodeToString(key.PublicKey().Bytes()))
			text := strings.Replace(string(must(io.ReadAll(r.Body))), `"ttlSec":1800`, `"ttlSec":`+asked, 1)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
			answer, body := client.Do(r)
			var begun struct{ ExpiresInSec int64 }
			if err := json.Unmarshal(body, &begun); err != nil || answer.StatusCode != http.StatusOK || begun.ExpiresInSec != lifetime {
				t.Errorf("%s: %s, expected a session of %d s", answer.Status, body, lifetime)
			}
		})
	}
}

func TestHealthSaysWhetherThereAreSessions(t *testing.T) {
	for sentence, test := range map[string]struct {
		profiles string
		code     int
		want     string
	}{
		"a profile that offers sessions":     {shopProfile, 200, `{"status":"ok","timestamp":`},
		"a profile of other callers":         {strings.Replace(shopProfile, "Shop\n", "Shop\n  Callers: {Containers: [web]}\n", 1), 503, `{"status":"error","timestamp":`},
		"a profile of the gateway alone":     {strings.Replace(shopProfile, "Shop\n", "Shop\n  Callers: {Containers: [crypto-broker]}\n", 1), 200, `{"status":"ok","timestamp":`},
		"no such profile":                    {strings.Replace(shopProfile, "Shop", "Bank", 1), 503, `{"status":"error","timestamp":`},
		"a profile that offers other things": {"- Name: Shop\n  API: {HashData: {HashAlg: sha-256}}\n", 503, `{"status":"error","timestamp":`},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := start(t, recording(make(chan arrived, 1)), func(s *settings) { s.profiles = test.profiles })
			c := f.client(t, false)
			r := must(http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/health", nil))
			if answer, body := c.Do(r); answer.StatusCode != test.code || !strings.HasPrefix(string(body), test.want) {
				t.Errorf("%s: %s", answer.Status, body)
			}
			if test.code == http.StatusOK {
				connect(t, f, "", false)
			} else if answer, body := c.Do(c.InitRequest("AAAA")); answer.StatusCode != http.StatusServiceUnavailable || string(body) != `{"error":"UNAVAILABLE"}` {
				t.Errorf("%s: %s", answer.Status, body)
			} else if !strings.Contains(f.log.String(), "the session gateway has no sessions to offer") {
				t.Errorf("the log has %s", f.log)
			}
		})
	}
}
