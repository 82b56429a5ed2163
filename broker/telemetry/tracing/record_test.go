// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
)

const traceID, spanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

// metadata is the metadata of a request as it is on the wire, with a trace
// context of these fields, from the first on.
func metadata(fields ...string) []byte {
	var inner []byte
	for i, field := range fields {
		inner = protowire.AppendString(protowire.AppendTag(inner, protowire.Number(i+1), protowire.BytesType), field)
	}
	outer := protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), inner)
	return protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), outer)
}

func call(metadata []byte) *tracing.Call {
	now := time.Unix(1_700_000_000, 0)
	return &tracing.Call{
		Method: "/cryptobroker.v1.CryptoService/HashData", Operation: "HashData", Profile: "Default", Algorithm: "sha-256",
		Code: codes.OK, Metadata: metadata, Started: now, Ended: now.Add(time.Millisecond),
	}
}

// configure fills a configuration from variables, each NAME=value.
func configure(t testing.TB, variables ...string) *tracing.Config {
	t.Helper()
	c := tracing.NewConfig()
	for _, v := range c.Variables() {
		for _, variable := range variables {
			if value, is := strings.CutPrefix(variable, v.Name+"="); is {
				if err := v.Set(value); err != nil {
					t.Fatalf("%s: %v", variable, err)
				}
			}
		}
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	return c
}

// tracer makes one that writes spans to the text that it returns, once it is shut
// down.
func tracer(t testing.TB, variables ...string) (*tracing.Tracer, func() string) {
	t.Helper()
	var out bytes.Buffer
	made, err := tracing.New(t.Context(), configure(t, append(variables, "OTEL_TRACES_EXPORTER=console")...), tracing.Options{
		Version: "test", Stdout: &out, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	end := func() string {
		if err := made.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		return out.String()
	}
	return made, end
}

func TestACallThatIsNotSampledCostsAlmostNothing(t *testing.T) {
	for sentence, test := range map[string]struct {
		variable string
		metadata []byte
		most     float64
	}{
		"since its parent is not":           {"", metadata(traceID, spanID, "00"), 0},
		"since no call is":                  {"OTEL_TRACES_SAMPLER=always_off", nil, 0},
		"since its trace is not of a ratio": {"OTEL_TRACES_SAMPLER=parentbased_traceidratio", nil, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			made, end := tracer(t, test.variable, "OTEL_TRACES_SAMPLER_ARG=0")
			c, ctx := call(test.metadata), t.Context()
			if n := testing.AllocsPerRun(100, func() { made.Record(ctx, c) }); n > test.most {
				t.Errorf("it takes %v allocations, want at most %v", n, test.most)
			}
			if spans := end(); spans != "" {
				t.Errorf("got %s", spans)
			}
		})
	}
}

func TestTheLibraryLimitsTheAttributesOfSpans(t *testing.T) {
	for _, name := range tracing.LimitVariables() {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "2")
			made, end := tracer(t)
			made.Record(t.Context(), call(nil))
			span := end()
			if strings.HasSuffix(name, "_COUNT_LIMIT") {
				if got := strings.Count(span, `"Key":"rpc.`); got != 2 {
					t.Errorf("got %d of the first attributes, want 2: %s", got, span)
				}
			} else if !strings.Contains(span, `"Value":"gr"`) {
				t.Errorf("want the values cut after 2 characters: %s", span)
			}
		})
	}
}

func BenchmarkRecord(b *testing.B) {
	for sentence, test := range map[string]struct{ variable, flags string }{
		"not sampled": {"", "00"}, "sampled": {"", "01"},
	} {
		b.Run(sentence, func(b *testing.B) {
			made, end := tracer(b, test.variable)
			c, ctx := call(metadata(traceID, spanID, test.flags)), b.Context()
			b.ReportAllocs()
			for b.Loop() {
				made.Record(ctx, c)
			}
			b.StopTimer()
			end()
		})
	}
}

func TestSpansBeyondTheQueueAreCountedAndNobodyWaits(t *testing.T) {
	made, err := tracing.New(t.Context(), configure(t, "OTEL_TRACES_EXPORTER=console", "OTEL_BSP_MAX_QUEUE_SIZE=10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=1"),
		tracing.Options{Stdout: blocked(t), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for range 25 {
		made.Record(t.Context(), call(nil))
	}
	if got := made.Counts(); len(got) != 1 || got[0] != (tracing.Counts{Exporter: "console", Full: 15}) {
		t.Errorf("got %+v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := made.Shutdown(ctx); err == nil {
		t.Error("it could not export all, and did not say so")
	}
}

// blocked is a writer that does not return before the test ends.
func blocked(t *testing.T) writer {
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	return func([]byte) (int, error) {
		<-ended
		return 0, fmt.Errorf("the test has ended")
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func FuzzMetadata(f *testing.F) {
	f.Add(metadata(traceID, spanID, "01", "vendor=value", "id"))
	f.Add(metadata(traceID, spanID, "zz"))
	f.Add([]byte{0x2a, 0xff})
	made, end := tracer(f)
	f.Cleanup(func() { end() })
	f.Fuzz(func(_ *testing.T, wire []byte) {
		made.Record(context.Background(), call(wire))
	})
}
