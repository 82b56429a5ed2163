// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry/tracing"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// openTelemetry begins the names of OpenTelemetry's variables.
const openTelemetry = "OTEL_"

// traceSettings are the variables of OpenTelemetry, most of them without a flag.
func (c *config) traceSettings() []setting {
	c.traces = tracing.NewConfig()
	var settings []setting
	for _, v := range c.traces.Variables() {
		settings = append(settings, setting{name: v.Flag, env: v.Name, kind: v.Kind, usage: v.Usage, secret: v.Secret, set: v.Set})
	}
	return settings
}

// readTraces checks variables that depend on each other.
func (c *config) readTraces() error {
	if err := c.traces.Check(); err != nil {
		return program.Usagef("%v", err)
	}
	if c.traces.UsesPrometheus() && c.statusAddress == "" {
		return program.Usagef("OTEL_METRICS_EXPORTER is prometheus, but there is no status port to serve metrics at: set --status-address, too")
	}
	return nil
}

// useTracing starts the export of spans, if the environment asks for it.
func (c *config) useTracing(ctx context.Context, stdout io.Writer, environ []string, logger *slog.Logger) (*tracing.Tracer, error) {
	if unused := c.unusedVariables(environ); len(unused) > 0 {
		logger.Info("some variables of OpenTelemetry have no effect on this broker", "variables", unused)
	}
	tracer, err := tracing.New(ctx, c.traces, tracing.Options{Version: program.Version(version), Stdout: stdout, Logger: logger})
	if err != nil {
		return nil, err
	}
	if tracer != nil {
		logger.Info("exporting spans", "to", c.traces.Targets(), "sampler", c.traces.Sampler())
	}
	return tracer, nil
}

// unusedVariables returns the names of OpenTelemetry's variables that are set and
// have no effect.
func (c *config) unusedVariables(environ []string) []string {
	var unused []string
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, openTelemetry) && value != "" && !slices.Contains(tracing.LimitVariables(), name) &&
			!slices.ContainsFunc(c.traces.Variables(), func(v tracing.Variable) bool { return v.Name == name }) {
			unused = append(unused, name)
		}
	}
	slices.Sort(unused)
	return unused
}

// endTracing exports the last spans. If that fails, the broker ends without exporting them.
func endTracing(ctx context.Context, tracer *tracing.Tracer, logger *slog.Logger) {
	if tracer == nil {
		return
	}
	if err := tracer.Shutdown(ctx); err != nil {
		logger.Warn("the export of the last spans failed", "error", err)
	}
}

// usageIndent is the indent of the text about a variable, in columns.
const usageIndent = 6

// wrapped breaks a text into lines of at most so many columns.
func wrapped(text string, width int) iter.Seq[string] {
	return func(yield func(string) bool) {
		line := ""
		for word := range strings.FieldsSeq(text) {
			switch {
			case line == "":
				line = word
			case len(line)+1+len(word) > width:
				if !yield(line) {
					return
				}
				line = word
			default:
				line += " " + word
			}
		}
		yield(line)
	}
}

// variableUsages describes the settings that have no flag.
func variableUsages(settings []setting) string {
	var text strings.Builder
	for _, s := range settings {
		if s.name == "" {
			fmt.Fprintf(&text, "  %s\n", s.env)
			for line := range wrapped(s.usage, program.HelpWidth-usageIndent) {
				fmt.Fprintf(&text, "%*s%s\n", usageIndent, "", line)
			}
		}
	}
	return text.String()
}
