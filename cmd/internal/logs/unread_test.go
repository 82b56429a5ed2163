// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
)

func TestAnOutputThatNobodyReadsStopsNothingAndTheMissingLinesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		handler, _ := New(Options{To: writer, Format: JSON, Level: slog.LevelInfo, Component: "broker", Version: "1.2.3"})
		logger := slog.New(handler)
		for _, message := range []string{"first", "second", "third"} {
			logger.Info(message) // returns although nobody reads
		}
		lines := bufio.NewScanner(reader)
		next := func() line {
			t.Helper()
			if !lines.Scan() {
				t.Fatal(lines.Err())
			}
			var l line
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				t.Fatal(err)
			}
			return l
		}
		if l := next(); l["msg"] != "first" {
			t.Errorf("found %v, expected the line that waited", l)
		}
		synctest.Wait()
		go logger.Info("fourth")
		if l := next(); l["msg"] != unread || l["level"] != "WARN" || l["omitted"] != 2.0 || l["component"] != "broker" || l["version"] != "1.2.3" {
			t.Errorf("found %v, expected that 2 lines are missing", l)
		}
		if l := next(); l["msg"] != "fourth" {
			t.Errorf("found %v, expected the line after it", l)
		}
	})
}
