// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"io"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"
)

// The values of the flags --log-format.
const (
	JSON = "json"
	Text = "text"
)

// Options are the settings of a log. All fields are required.
type Options struct {
	// To receives whole lines. If it takes none for a second, the lines that follow are lost until it
	// takes that line, and then a line says how many.
	To io.Writer
	// Format is JSON or Text.
	Format string
	// Level is the lowest level that is written. It is read for each line.
	Level slog.Leveler
	// Component and Version name the program and its version.
	Component, Version string
}

// New returns the handler of a program's log. end writes how many lines the limit on repeats has
// left out so far; the handler can still be used afterwards. From then on, the program goes on if
// the reader of its standard output or standard error ends.
func New(o Options) (handler slog.Handler, end func()) {
	signal.Ignore(syscall.SIGPIPE) // otherwise the next line would kill the program
	options := &slog.HandlerOptions{Level: o.Level, ReplaceAttr: schema}
	to := func(output io.Writer) slog.Handler {
		var lines slog.Handler = slog.NewJSONHandler(output, options)
		if o.Format == Text {
			lines = slog.NewTextHandler(output, options)
		}
		return lines.WithAttrs([]slog.Attr{slog.String("component", o.Component), slog.String("version", o.Version)})
	}
	lines := to(&patient{to: o.To, missing: missingLine(to)})
	r := newRepeats(lines)
	return &limited{r, func() (slog.Handler, uint64) { return lines, 0 }}, r.report
}

// unsolicited begins a line of net/http that goes on with what a server has sent after its reply, up to 4 KiB. It may
// be a key, or a plaintext of the application behind the session gateway.
const unsolicited = "Unsolicited response received on idle HTTP channel"

// schema gives the common parts of lines the same form, whichever library writes the line.
func schema(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		if a.Value.Kind() == slog.KindTime {
			a.Value = slog.TimeValue(a.Value.Time().UTC())
		}
	case slog.LevelKey:
		if level, ok := a.Value.Any().(slog.Level); ok {
			a.Value = slog.StringValue(levelName(level))
		}
	case slog.MessageKey:
		if strings.HasPrefix(a.Value.String(), unsolicited) {
			a.Value = slog.StringValue(unsolicited)
		}
	case "err": // the name that logr gives to errors
		a.Key = "error"
	}
	return a
}

// levelName returns one of four names. Libraries of Kubernetes have levels between them: logr's
// verbosity 1 is between debug and info.
func levelName(level slog.Level) string {
	switch {
	case level < slog.LevelInfo:
		return slog.LevelDebug.String()
	case level < slog.LevelWarn:
		return slog.LevelInfo.String()
	case level < slog.LevelError:
		return slog.LevelWarn.String()
	}
	return slog.LevelError.String()
}
