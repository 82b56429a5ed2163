// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// output is where a log writes. It may be read meanwhile.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(line)
}

type line map[string]any

// lines returns what was written since the last call.
func (o *output) lines(t *testing.T) []line {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	var lines []line
	decoder := json.NewDecoder(&o.text)
	for decoder.More() {
		var l line
		if err := decoder.Decode(&l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	o.text.Reset()
	return lines
}

func newLog(level slog.Level) (*slog.Logger, *output, func()) {
	out := &output{}
	handler, end := New(Options{To: out, Format: JSON, Level: level, Component: "broker", Version: "1.2.3"})
	return slog.New(handler), out, end
}

func count(lines []line, attribute string, value any) int {
	n := 0
	for _, l := range lines {
		if l[attribute] == value {
			n++
		}
	}
	return n
}

func TestEachLineHasTimeLevelMessageComponentAndVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, out, _ := newLog(-8)
		time.Sleep(time.Second) //nolint:forbidigo // synctest's time, which waits for nothing
		for level, name := range map[slog.Level]string{-8: "DEBUG", -4: "DEBUG", -1: "DEBUG", 0: "INFO", 3: "INFO", 4: "WARN", 8: "ERROR", 12: "ERROR"} {
			logger.Log(t.Context(), level, "profiles loaded", "served", 3, "err", errors.New("no such file"))
			got := out.lines(t)
			want := line{
				"time": "2000-01-01T00:00:01Z", "level": name, "msg": "profiles loaded", "component": "broker", "version": "1.2.3",
				"served": 3.0, "error": "no such file",
			}
			if len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) {
				t.Errorf("found %v at level %d, expected %v", got, level, want)
			}
		}
	})
}

func TestLinesAsTextHaveTheSameParts(t *testing.T) {
	var out bytes.Buffer
	handler, _ := New(Options{To: &out, Format: Text, Level: slog.LevelInfo, Component: "gateway", Version: "1.2.3"})
	slog.New(handler).Warn("a key cannot be used", "key", "k")
	if _, after, _ := strings.Cut(out.String(), " "); after != "level=WARN msg=\"a key cannot be used\" component=gateway version=1.2.3 key=k\n" {
		t.Errorf("found the line %q", out.String())
	}
}

func TestALineThatRepeatsIsLeftOutAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, out, _ := newLog(slog.LevelInfo)
		for range 50 {
			logger.Warn("a key cannot be used", "key", "a")
		}
		logger.Warn("a key cannot be used", "key", "b")
		logger.With("key", "a").Warn("a key cannot be used")
		logger.Error("a key cannot be used", "key", "a")
		got := out.lines(t)
		if len(got) != maxSameLine+3 {
			t.Fatalf("found %d lines, expected %d of the storm and the 3 others", len(got), maxSameLine)
		}

		time.Sleep(window) //nolint:forbidigo // synctest's time, which waits for nothing
		synctest.Wait()
		got = out.lines(t)
		if len(got) != 1 || got[0]["msg"] != leftOut || got[0]["repeated"] != "a key cannot be used" || got[0]["omitted"] != 40.0 ||
			got[0]["level"] != "WARN" || got[0]["component"] != "broker" {
			t.Fatalf("found %v at the end of the window, expected one line about 40 lines", got)
		}

		logger.Warn("a key cannot be used", "key", "a")
		if got = out.lines(t); len(got) != 1 {
			t.Errorf("found %v in the next window, expected the line", got)
		}
		time.Sleep(2 * window) //nolint:forbidigo // synctest's time, which waits for nothing
		synctest.Wait()
		if got = out.lines(t); len(got) != 0 {
			t.Errorf("found %v after a window that left out nothing", got)
		}
	})
}

func TestTheEndOfAProgramSaysWhatWasLeftOut(t *testing.T) {
	logger, out, end := newLog(slog.LevelInfo)
	for range maxSameLine + 5 {
		logger.Info("listening")
	}
	end()
	if got := out.lines(t); len(got) != maxSameLine+1 || got[maxSameLine]["omitted"] != 5.0 {
		t.Errorf("found %v, expected a last line about 5 lines", got)
	}
}

func TestLinesThatDifferOnlyInTheIdOfAReconciliationAreTheSame(t *testing.T) {
	logger, out, _ := newLog(slog.LevelInfo)
	for i := range 2 * maxSameLine {
		logger.Error("Reconciler error", "namespace", "shop", "reconcileID", i)
	}
	if got := out.lines(t); len(got) != maxSameLine {
		t.Errorf("found %d lines, expected %d", len(got), maxSameLine)
	}
}

func TestHostileLinesTakeBoundedSpaceAndHideNoOtherMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, out, _ := newLog(slog.LevelInfo)
		// One message with many attributes, then many messages.
		for i := range 5 * maxSameMessage {
			logger.Warn("refused a request because of its token", "address", i)
		}
		for i := range 5 * maxSameMessage {
			logger.Warn(fmt.Sprint("http: TLS handshake error ", i, strings.Repeat("x", 1000)))
		}
		logger.Error("the signing keys are not in order")
		got := out.lines(t)
		if n := count(got, "msg", "refused a request because of its token"); n != maxSameMessage {
			t.Errorf("found %d lines of one message, expected %d", n, maxSameMessage)
		}
		if most := 2*maxSameMessage + maxMessages + 1; len(got) > most {
			t.Errorf("found %d lines, expected at most %d", len(got), most)
		}
		if n := count(got, "msg", "the signing keys are not in order"); n != 1 {
			t.Errorf("found %d lines of an error that nobody repeated, expected 1", n)
		}
		r := logger.Handler().(*limited).repeats //nolint:forcetypeassert // newLog made it
		r.mu.Lock()
		if len(r.messages) > maxMessages+4 || len(r.lines) > maxLines {
			t.Errorf("the log remembers %d messages and %d lines, expected at most %d and %d", len(r.messages), len(r.lines), maxMessages+4, maxLines)
		}
		for m := range r.messages {
			if len(m.text) > maxMessage {
				t.Errorf("the log remembers a message of %d bytes, expected at most %d", len(m.text), maxMessage)
			}
		}
		r.mu.Unlock()
		time.Sleep(window) //nolint:forbidigo // synctest's time, which waits for nothing
		synctest.Wait()
		omitted := 0.0
		for _, l := range out.lines(t) {
			omitted += l["omitted"].(float64) //nolint:forcetypeassert // the test fails if it panics
		}
		if all := float64(10*maxSameMessage + 1); omitted+float64(len(got)) != all {
			t.Errorf("%d lines were written and %.0f counted as left out, expected %.0f together", len(got), omitted, all)
		}
	})
}

// A line below the level costs the same as with a handler of the standard library.
func TestALineBelowTheLevelCostsNoAllocation(t *testing.T) {
	logger, _, _ := newLog(slog.LevelInfo)
	if n := testing.AllocsPerRun(100, func() { logger.LogAttrs(t.Context(), slog.LevelDebug, "nothing", slog.String("key", "k")) }); n != 0 {
		t.Errorf("found %v allocations, expected none", n)
	}
}

func BenchmarkLines(b *testing.B) {
	ours, _ := New(Options{To: &discard{}, Format: JSON, Level: slog.LevelInfo, Component: "broker", Version: "1.2.3"})
	for name, handler := range map[string]slog.Handler{
		"standard": slog.NewJSONHandler(&discard{}, &slog.HandlerOptions{Level: slog.LevelInfo}), "ours": ours,
	} {
		logger := slog.New(handler)
		b.Run(name+" below the level", func(b *testing.B) {
			for b.Loop() {
				logger.LogAttrs(b.Context(), slog.LevelDebug, "nothing", slog.String("key", "k"))
			}
		})
		b.Run(name+" in a storm", func(b *testing.B) {
			for b.Loop() {
				logger.LogAttrs(b.Context(), slog.LevelWarn, "a key cannot be used", slog.String("key", "k"))
			}
		})
	}
}

type discard struct{}

func (*discard) Write(line []byte) (int, error) { return len(line), nil }
