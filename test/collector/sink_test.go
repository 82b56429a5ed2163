// SPDX-License-Identifier: Apache-2.0

//go:build traces && linux

package collector_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// span is a span as OTLP has it in JSON.
type span struct {
	TraceID, SpanID, ParentSpanID, TraceState string
	Name                                      string
	Kind                                      int
	StartTimeUnixNano, EndTimeUnixNano        string
	Attributes                                []attribute
	Status                                    struct {
		Code    int
		Message string
	}
	resource map[string]any
}

type attribute struct {
	Key   string
	Value map[string]any
}

// is returns the value of an attribute as text, empty if there is none.
func (s span) is(key string) string { return value(s.Attributes, key) }

func value(attributes []attribute, key string) string {
	for _, a := range attributes {
		if a.Key != key {
			continue
		}
		for _, v := range a.Value {
			return fmt.Sprint(v)
		}
	}
	return ""
}

// sink gets what a collector, or a broker itself, exports over HTTP in JSON.
type sink struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []span
	bodies  strings.Builder
	headers []http.Header
	more    chan struct{} // closed and made again with each export
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{more: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.take(r); err != nil {
			t.Errorf("an export: %v", err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sink) take(r *http.Request) error {
	if r.URL.Path != "/v1/traces" {
		return fmt.Errorf("the path is %s", r.URL.Path)
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			return err
		}
		body = unzipped
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var export struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []attribute }
			ScopeSpans []struct{ Spans []span }
		}
	}
	if err := json.Unmarshal(text, &export); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies.Write(text)
	s.headers = append(s.headers, r.Header)
	for _, from := range export.ResourceSpans {
		resource := map[string]any{}
		for _, a := range from.Resource.Attributes {
			resource[a.Key] = value(from.Resource.Attributes, a.Key)
		}
		for _, scope := range from.ScopeSpans {
			for _, got := range scope.Spans {
				got.resource = resource
				got.TraceID, got.SpanID, got.ParentSpanID = strings.ToLower(got.TraceID), strings.ToLower(got.SpanID), strings.ToLower(got.ParentSpanID)
				s.spans = append(s.spans, got)
			}
		}
	}
	close(s.more)
	s.more = make(chan struct{})
	return nil
}

// receivedSpans returns all spans so far.
func (s *sink) receivedSpans() []span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.spans)
}

// wait returns the spans once there are n.
func (s *sink) wait(t *testing.T, n int) []span {
	t.Helper()
	deadline := time.After(waitLimit)
	for {
		s.mu.Lock()
		more, spans := s.more, slices.Clone(s.spans)
		s.mu.Unlock()
		if len(spans) >= n {
			return spans
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("got %d spans, want %d", len(spans), n)
		}
	}
}
