// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// maxAnswer is more than any answer has, in bytes: a plaintext of a mebibyte in base64.
const maxAnswer = 4 << 20

// Call is a line to a driver.
type Call struct {
	Operation string         `json:"operation"`
	Request   map[string]any `json:"request"`
}

// profileOperation returns the name of the operation in profiles: a stream of input to hash is
// HashData there.
func (c Call) profileOperation() string {
	if c.Operation == "HashStream" {
		return "HashData"
	}
	return c.Operation
}

// Answer is a line from a driver. It has one of the fields.
type Answer struct {
	Reply       map[string]any `json:"reply,omitempty"`
	Error       *CallError     `json:"error,omitempty"`
	Unsupported bool           `json:"unsupported,omitempty"`
	// Refused is the reason why a released client did not send the request. Each client has its own words.
	Refused string `json:"refused,omitempty"`
}

// CallError has the content of an error of a client.
type CallError struct {
	Code      string `json:"code"`
	Operation string `json:"operation"`
	Profile   string `json:"profile"`
	Message   string `json:"message"`
}

// driver makes the calls of one client.
type driver interface {
	// call makes a call and returns its reply or its error. The returned error is a defect of the
	// driver.
	call(Call) (Answer, error)
	// close ends the driver.
	close() error
}

// program is a driver that is a program.
type program struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Scanner
	stderr bytes.Buffer
}

// startProgram starts a driver for the broker at a socket.
func startProgram(path, socket string, args ...string) (*program, error) {
	p := &program{cmd: exec.Command(path, args...)}
	p.cmd.Env = append(os.Environ(), "CRYPTO_BROKER_SOCKET="+socket)
	p.cmd.Stderr = &p.stderr
	var err error
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.output = bufio.NewScanner(output)
	p.output.Buffer(nil, maxAnswer)
	return p, p.cmd.Start()
}

func (p *program) call(c Call) (Answer, error) {
	line, err := json.Marshal(c)
	if err != nil {
		return Answer{}, err
	}
	if _, err := p.input.Write(append(line, '\n')); err != nil {
		return Answer{}, p.broken(err)
	}
	if !p.output.Scan() {
		return Answer{}, p.broken(errors.Join(p.output.Err(), errors.New("the driver wrote no answer")))
	}
	var answer Answer
	decoder := json.NewDecoder(bytes.NewReader(p.output.Bytes()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&answer); err != nil {
		return Answer{}, fmt.Errorf("the driver wrote %.200q: %w", p.output.Bytes(), err)
	}
	return answer, nil
}

// broken returns an error with what the driver has written to standard error.
func (p *program) broken(err error) error {
	return fmt.Errorf("%w\n%w\n%s", err, errors.Join(p.cmd.Process.Kill(), p.cmd.Wait()), &p.stderr)
}

func (p *program) close() error {
	if err := p.input.Close(); err != nil {
		return err
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the driver ended with %w\n%s", err, &p.stderr)
	}
	return nil
}
