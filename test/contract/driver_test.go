// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"os"
	"os/exec"

	"github.com/crypto-broker/crypto-broker-operator/test/dialogue"
)

// maxAnswer is larger in bytes than any message: a plaintext of 1 MiB, also in base64.
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
type program struct{ dialogue *dialogue.Program }

// startProgram starts a driver for the broker at a socket.
func startProgram(path, socket string, args ...string) (*program, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "CRYPTO_BROKER_SOCKET="+socket)
	p, err := dialogue.Start(cmd)
	return &program{p}, err
}

func (p *program) call(c Call) (answer Answer, err error) {
	err = p.dialogue.Ask(c, &answer, 0)
	return answer, err
}

func (p *program) close() error { return p.dialogue.Close() }
