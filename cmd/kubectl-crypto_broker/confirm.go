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
	line, err := bufio.NewReader(in).ReadString('\n')
	if ctx.Err() != nil { // standard input ends with the context
		return errors.New(nothing)
	}
	if err != nil && line == "" {
		fmt.Fprintln(out)
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.New(nothing + ": it was not confirmed (answer y, or give --yes)")
	}
	return nil
}
