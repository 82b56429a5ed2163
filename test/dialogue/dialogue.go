// SPDX-License-Identifier: Apache-2.0

// Package dialogue runs a program that reads questions from its standard input and writes the answers to its standard output, each
// as a line of JSON. It does not know what the program is asked.
package dialogue

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// maxAnswer is larger in bytes than any answer: a plaintext of 1 MiB in base64.
const maxAnswer = 4 << 20

// Program is a running program. It is for one goroutine.
type Program struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Scanner
	stderr bytes.Buffer
}

// Start starts a program. It uses the standard streams of cmd.
func Start(cmd *exec.Cmd) (*Program, error) {
	p := &Program{cmd: cmd}
	cmd.Stderr = &p.stderr
	var err error
	if p.input, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.output = bufio.NewScanner(output)
	p.output.Buffer(nil, maxAnswer)
	return p, cmd.Start()
}

// Ask sends a question and reads the answer, which may have no unknown fields. It kills the program if the answer takes longer than
// limit; 0 is no limit. After an error, the program has ended, and the error has what it has written to standard error.
func (p *Program) Ask(question, answer any, limit time.Duration) error {
	line, err := json.Marshal(question)
	if err != nil {
		return err
	}
	if limit > 0 {
		late := time.AfterFunc(limit, func() { _ = p.cmd.Process.Kill() })
		defer late.Stop()
	}
	if _, err := p.input.Write(append(line, '\n')); err != nil {
		return p.broken(err)
	}
	if !p.output.Scan() {
		return p.broken(errors.Join(p.output.Err(), errors.New("the program wrote no answer")))
	}
	decoder := json.NewDecoder(bytes.NewReader(p.output.Bytes()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(answer); err != nil {
		return p.broken(fmt.Errorf("the program wrote %.200q: %w", p.output.Bytes(), err))
	}
	return nil
}

// broken ends the program, and returns an error with what it has written to standard error.
func (p *Program) broken(err error) error {
	return fmt.Errorf("%w\n%w\n%s", err, errors.Join(p.cmd.Process.Kill(), p.cmd.Wait()), &p.stderr)
}

// Close ends the program by closing its standard input, and waits for its end.
func (p *Program) Close() error {
	if err := p.input.Close(); err != nil {
		return err
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the program ended with %w\n%s", err, &p.stderr)
	}
	return nil
}
