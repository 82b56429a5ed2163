// SPDX-License-Identifier: Apache-2.0

package subcommands

import (
	"context"
	"io"
)

// input is standard input until the context ends. Nothing interrupts a read from a terminal or a
// pipe. Without input, a command that reads would end only at the second signal.
type input struct {
	ctx    context.Context
	from   io.Reader
	buffer []byte // of the read that is in progress, because it may still write after the context
}

// Read implements io.Reader.
func (i *input) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, interrupted{}
	}
	if len(i.buffer) < len(p) {
		i.buffer = make([]byte, len(p))
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func(buffer []byte) {
		n, err := i.from.Read(buffer)
		done <- result{n, err}
	}(i.buffer[:len(p)])
	select {
	case r := <-done:
		copy(p, i.buffer[:r.n])
		clear(i.buffer[:r.n]) // the input may be a key
		return r.n, r.err
	case <-i.ctx.Done():
		return 0, interrupted{}
	}
}

// interrupted is the error of a read that a signal ended.
type interrupted struct{}

// Error implements error.
func (interrupted) Error() string { return "interrupted" }

// Is reports whether target is the error of a context that ended.
func (interrupted) Is(target error) bool { return target == context.Canceled }
