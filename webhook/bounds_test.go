// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crypto-broker/crypto-broker-operator/webhook/shares"
)

// serving serves next with the bounds in front, by HTTP over loopback. room is the size of the work that fits.
func serving(t *testing.T, room int64, next http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(&bounded{next: next, bodies: shares.New(bodyShares), work: shares.New(room), least: leastPod, wait: 50 * time.Millisecond})
	t.Cleanup(server.Close)
	return server
}

// answer is what a server answered.
type answer struct {
	status           int
	text, retryAfter string
}

// post sends a body. It may run in any goroutine.
func post(t *testing.T, server *httptest.Server, body io.Reader) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	data, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Error(err)
	}
	return answer{response.StatusCode, strings.TrimSpace(string(data)), response.Header.Get("Retry-After")}
}

func echo(w http.ResponseWriter, r *http.Request) {
	_, err := io.Copy(w, r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func TestARequestWithinTheBoundsGoesThrough(t *testing.T) {
	server := serving(t, podShares, echo)
	whole := `{"a":"` + strings.Repeat("x", maxBodySize-len(`{"a":""}`)) + `"}`
	for name, body := range map[string]string{"a small one": "{}", "the largest": whole} {
		t.Run(name, func(t *testing.T) {
			if found := post(t, server, strings.NewReader(body)); found.status != http.StatusOK || found.text != body {
				t.Errorf("answered %d with %d bytes, expected the %d that were sent", found.status, len(found.text), len(body))
			}
		})
	}
}

func TestARequestBeyondTheBoundsIsRefused(t *testing.T) {
	tests := map[string]struct {
		body   io.Reader
		status int
		want   string
	}{
		"that is too large": {
			bytes.NewReader(make([]byte, maxBodySize+1)), http.StatusRequestEntityTooLarge,
			"the request has 7340033 bytes, expected at most 7340032",
		},
		"that does not say how large it is": {
			io.MultiReader(strings.NewReader("{}")), http.StatusLengthRequired,
			"the length of the request is not known, expected the header Content-Length",
		},
		"with too many values": {
			strings.NewReader("{" + strings.Repeat(",", 20_000) + "}"), http.StatusRequestEntityTooLarge,
			"the request has 20001 values in its JSON, expected at most 20000",
		},
		"that is YAML": {
			strings.NewReader("request: {}"), http.StatusBadRequest,
			"the request is not in JSON, expected an AdmissionReview",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := serving(t, podShares, echo)
			if found := post(t, server, test.body); found.status != test.status || found.text != test.want {
				t.Errorf("answered %+v, expected %d %q", found, test.status, test.want)
			}
		})
	}
}

// reviewIn is a request about an object of a namespace.
func reviewIn(namespace string) io.Reader {
	return strings.NewReader(fmt.Sprintf(`{"request":{"name":"namespace","namespace":%q,"object":{"namespace":"x"}}}`, namespace))
}

// One namespace gets a quarter of the room, so that others find room, too.
func TestARequestForWhichThereIsNoRoomIsToldToComeAgain(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	server := serving(t, 8*leastPod, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	})
	var running sync.WaitGroup
	send := func(namespace string) {
		running.Go(func() {
			if found := post(t, server, reviewIn(namespace)); found.status != http.StatusOK {
				t.Errorf("a request that had room was answered %+v", found)
			}
		})
		<-arrived
	}
	send("noisy")
	send("noisy")
	if found := post(t, server, reviewIn("noisy")); found.status != http.StatusTooManyRequests || found.retryAfter == "" {
		t.Errorf("answered %+v, expected 429 and a time", found)
	}
	send("quiet")
	close(release)
	running.Wait()
}

// A client may announce a large body. It takes room only for the bytes that have arrived.
func TestABodyTakesWhatHasCome(t *testing.T) {
	bodies := shares.New(bodyShares)
	server := httptest.NewServer(&bounded{next: http.HandlerFunc(echo), bodies: bodies, work: shares.New(podShares), least: leastPod, wait: maxWait})
	t.Cleanup(server.Close)
	for range 100 {
		announce(t, server.Listener.Addr().String(), maxBodySize, "{")
	}
	other := shares.Holder{Client: "other"}
	const whileFewer = (bodyShares-100*firstBuffer)/2 + 1 // bytes that another client could have before all of them are read
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		if bodies.Try(other, whileFewer) {
			bodies.Release(other, whileFewer)
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("the bodies are not being read: %v", err)
	}
	if found := post(t, server, strings.NewReader("{}")); found.status != http.StatusOK {
		t.Errorf("answered %+v", found)
	}
	if !bodies.Try(other, bodyShares/4) {
		t.Error("a quarter of the bytes is not free, though a hundred came")
	}
}

// Pods have addresses of their own, as the API server has.
func TestAnHonestRequestIsAnsweredWhileOthersAnnounceWhatDoesNotCome(t *testing.T) {
	for name, test := range map[string]struct {
		connections, addresses int
		first                  string
	}{
		"20 connections of one address":                      {20, 1, ""},
		"200 connections of one address":                     {200, 1, ""},
		"200 connections of 20 addresses":                    {200, 20, ""},
		"200 connections of 20 addresses that send a little": {200, 20, strings.Repeat(" ", 100_000)},
	} {
		t.Run(name, func(t *testing.T) {
			server := serving(t, podShares, echo)
			for i := range test.connections {
				announceFrom(t, fmt.Sprintf("127.0.1.%d", 1+i%test.addresses), server.Listener.Addr().String(), 7_000_000, test.first)
			}
			if found := post(t, server, strings.NewReader("{}")); found.status != http.StatusOK {
				t.Errorf("answered %+v", found)
			}
		})
	}
}

// announce sends the headers of a request with a body of this size, and its first
// bytes.
func announce(t *testing.T, address string, size int, first string) net.Conn {
	t.Helper()
	return announceFrom(t, "127.0.0.1", address, size, first)
}

// announceFrom does so from an address of loopback.
func announceFrom(t *testing.T, client, address string, size int, first string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(client)}}
	connection, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() }) // the server may have closed it already
	// The server may refuse the request before the client has written all of it.
	_, _ = fmt.Fprintf(connection, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", size, first)
	return connection
}

func TestANamespaceIsFoundWithoutReadingTheRequest(t *testing.T) {
	tests := map[string]struct {
		body, namespace string
		values          int
	}{
		"a request":                             {`{"kind":"AdmissionReview","request":{"uid":"1","namespace":"shop","object":{"metadata":{"namespace":"other"}}}}`, "shop", 7},
		"one with spaces":                       {"{ \"request\" : {\n \"namespace\" : \"shop\" } }", "shop", 2},
		"one of the cluster":                    {`{"request":{"uid":"1"}}`, clusterScope, 2},
		"one about an object called namespace":  {`{"request":{"name":"namespace","namespace":"shop"}}`, "shop", 3},
		"one with quotes and brackets in texts": {`{"request":{"name":"\"},{[\\","namespace":"sh\u006fp"}}`, "shop", 3},
		"a text that ends too early":            {`{"request":{"namespace":"sho`, clusterScope, 2},
		"a text that ends with a key":           {`{"request":{"namespace"`, clusterScope, 2},
		"nothing":                               {"", clusterScope, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if found := measure([]byte(test.body)); found.namespace != test.namespace || found.values != test.values {
				t.Errorf("found %+v, expected the namespace %s and %d values", found, test.namespace, test.values)
			}
		})
	}
}

// A client that sends half a body holds its room for two seconds and no longer.
func TestAClientThatStopsSendingIsAnsweredInTime(t *testing.T) {
	server := serving(t, podShares, echo)
	connection := announce(t, server.Listener.Addr().String(), 100, "{")
	if err := connection.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len("HTTP/1.1 400"))
	if _, err := io.ReadFull(connection, answer); err != nil || string(answer) != "HTTP/1.1 400" {
		t.Errorf("answered %q (%v), expected 400", answer, err)
	}
}

// The time limit is for reading the body. Later steps may take longer.
func TestWorkMayTakeLongerThanTheBody(t *testing.T) {
	server := serving(t, podShares, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			http.Error(w, "the request ended: "+r.Context().Err().Error(), http.StatusInternalServerError)
		case <-time.After(maxReadTime + 200*time.Millisecond):
			echo(w, r)
		}
	})
	if found := post(t, server, strings.NewReader("{}")); found.status != http.StatusOK || found.text != "{}" {
		t.Errorf("answered %+v", found)
	}
}
