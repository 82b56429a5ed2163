// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
)

// serving serves next behind bounds, by HTTP over loopback.
func serving(t *testing.T, room int64, next http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(&bounded{next: next, bytes: semaphore.NewWeighted(room), wait: 50 * time.Millisecond})
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
	server := serving(t, maxBytesInFlight, echo)
	for name, body := range map[string]io.Reader{
		"of a known length":    strings.NewReader("{}"),
		"of an unknown length": io.MultiReader(strings.NewReader("{}")),
	} {
		t.Run(name, func(t *testing.T) {
			if found := post(t, server, body); found.status != http.StatusOK || found.text != "{}" {
				t.Errorf("answered %+v", found)
			}
		})
	}
}

func TestABodyThatIsTooLargeIsRefused(t *testing.T) {
	server := serving(t, maxBytesInFlight, echo)
	large := bytes.Repeat([]byte(" "), maxBodySize+1)
	tests := map[string]struct {
		body io.Reader
		want string
	}{
		"and says so":         {bytes.NewReader(large), "the request has 7340033 bytes, expected at most 7340032"},
		"and does not say so": {io.MultiReader(bytes.NewReader(large)), "the request is larger than expected: at most 7340032 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if found := post(t, server, test.body); found.status != http.StatusRequestEntityTooLarge || found.text != test.want {
				t.Errorf("answered %+v, expected 413 %q", found, test.want)
			}
		})
	}
}

func TestARequestForWhichThereIsNoRoomIsToldToComeAgain(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	server := serving(t, 2*minBodyCost, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	})
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			if found := post(t, server, strings.NewReader("{}")); found.status != http.StatusOK {
				t.Errorf("a request that had room was answered %+v", found)
			}
		})
	}
	<-arrived
	<-arrived
	if found := post(t, server, strings.NewReader("{}")); found.status != http.StatusTooManyRequests || found.retryAfter == "" {
		t.Errorf("answered %+v, expected 429 and a time", found)
	}
	close(release)
	running.Wait()
}

// A client that sends half a body holds its room for two seconds and no longer.
func TestAClientThatStopsSendingIsAnsweredInTime(t *testing.T) {
	server := serving(t, maxBytesInFlight, echo)
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := io.WriteString(connection, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if err := connection.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len("HTTP/1.1 400"))
	if _, err := io.ReadFull(connection, answer); err != nil || string(answer) != "HTTP/1.1 400" {
		t.Errorf("answered %q (%v), expected 400", answer, err)
	}
}

// The time to read is for the body: what comes after it may take longer.
func TestWorkMayTakeLongerThanTheBody(t *testing.T) {
	server := serving(t, maxBytesInFlight, func(w http.ResponseWriter, r *http.Request) {
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
