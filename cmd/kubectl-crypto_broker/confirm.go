// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// confirm asks a question, and returns an error unless the answer is yes. nothing is the error if
// the answer is another one.
func confirm(ctx context.Context, in io.Reader, out io.Writer, question, nothing string) error {
	fmt.Fprintf(out, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && line == "" {
			fmt.Fprintln(out)
		}
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return errors.New(nothing)
	case line := <-answer:
		if line != "y" && line != "yes" {
			return errors.New(nothing + ": it was not confirmed (answer y, or give --yes)")
		}
		return nil
	}
}
