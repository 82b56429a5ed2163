// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// field is a name with a value.
type field struct {
	name  string
	value any
}

// result is the result of a call, in all forms that can be printed.
type result struct {
	// message is the message of the line in the log. took begins the line with the duration. It
	// is empty if there is no such line.
	message, took string
	// fields are the fields of the JSON object, and of the line in the log.
	fields []field
	// response is the field "response" of the line in the log, spelled as in released command
	// lines, or nil.
	response any
	// text is the output with --output text.
	text []byte
	// verdict is the error that the command returns after it has printed the result.
	verdict error
}

// printer prints results in the form that --output chose.
type printer struct {
	output *commandline.Choice
	stdout io.Writer
	logger *slog.Logger
	lines  *checkedOutput // the output of logger
}

// checkedOutput keeps the first error of an output, because a logger returns none.
type checkedOutput struct {
	to  io.Writer
	err error
}

// Write implements io.Writer.
func (o *checkedOutput) Write(line []byte) (int, error) {
	written, err := o.to.Write(line)
	o.err = cmp.Or(o.err, err)
	return written, err
}

func (p *printer) open(cmd *cobra.Command) error {
	p.stdout = cmd.OutOrStdout()
	p.logger = slog.New(slog.DiscardHandler)
	if p.output.Value != commandline.FormatLog {
		return nil
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(cmp.Or(os.Getenv("CRYPTO_BROKER_LOG_LEVEL"), "info"))); err != nil {
		return program.Usagef("the environment variable CRYPTO_BROKER_LOG_LEVEL is %q, expected debug, info, warn or error", os.Getenv("CRYPTO_BROKER_LOG_LEVEL"))
	}
	output := p.stdout
	switch name := os.Getenv("CRYPTO_BROKER_LOG_OUTPUT"); strings.ToLower(name) {
	case "", "stdout":
	case "stderr":
		output = cmd.ErrOrStderr()
	default:
		return program.Usagef("the environment variable CRYPTO_BROKER_LOG_OUTPUT is %q, expected stdout or stderr", name)
	}
	p.lines = &checkedOutput{to: output}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler
	switch name := os.Getenv("CRYPTO_BROKER_LOG_FORMAT"); strings.ToLower(name) {
	case "", "json":
		handler = slog.NewJSONHandler(spelledOnce{p.lines}, options)
	case "text":
		handler = slog.NewTextHandler(p.lines, options)
	default:
		return program.Usagef("the environment variable CRYPTO_BROKER_LOG_FORMAT is %q, expected json or text", name)
	}
	p.logger = slog.New(handler).With("service", "crypto-broker")
	return nil
}

// log writes a line of the log, if --output is log.
func (p *printer) log(message string, attributes ...any) { p.logger.Info(message, attributes...) }

func (p *printer) print(r *result, took time.Duration) error {
	switch p.output.Value {
	case commandline.FormatJSON:
		return writeObject(p.stdout, r.fields)
	case commandline.FormatText:
		_, err := p.stdout.Write(r.text)
		return err
	}
	var attributes []any
	for _, f := range r.fields {
		attributes = append(attributes, f.name, f.value)
	}
	if r.response != nil {
		attributes = append(attributes, "response", r.response)
	}
	p.log(r.message, attributes...)
	if r.took != "" {
		p.log(fmt.Sprintf("%s took %d µs", r.took, took.Microseconds()))
	}
	return p.lines.err
}

// writeObject writes a JSON object on a line, its fields in their order.
func writeObject(w io.Writer, fields []field) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	separator := byte('{')
	for _, f := range fields {
		line.WriteByte(separator)
		separator = ','
		if err := encoder.Encode(f.name); err != nil {
			return err
		}
		line.Truncate(line.Len() - 1) // the end of the line that Encode writes
		line.WriteByte(':')
		if err := encoder.Encode(f.value); err != nil {
			return err
		}
		line.Truncate(line.Len() - 1)
	}
	line.WriteString("}\n")
	_, err := w.Write(line.Bytes())
	return err
}

// spelledOnce writes lines of a log. Released command lines spell the digest in
// two ways: one has a field "hashValueHex", the other "HashValueHex" within its
// response. The lines have both, for programs that parse them. Some scripts search the
// text for both spellings with at most one space after the colon. They have to find
// one digest and not two, so the second spelling has two spaces after the colon.
type spelledOnce struct{ to io.Writer }

// Write implements io.Writer. It changes no string value, because quotes in a string
// are escaped.
func (s spelledOnce) Write(line []byte) (int, error) {
	spaced := bytes.ReplaceAll(line, []byte(`"HashValueHex":"`), []byte(`"HashValueHex":  "`))
	if _, err := s.to.Write(spaced); err != nil {
		return 0, err
	}
	return len(line), nil
}
