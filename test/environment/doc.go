// SPDX-License-Identifier: Apache-2.0

// Package environment brings up what the demo and the end-to-end tests work in: a cluster, the container images and the
// installed chart. It drives the same commands that a user types, and reports progress as they do.
//
// Everything that is built or downloaded is kept in the cache folder of the repository, which the environment variable
// CRYPTO_BROKER_CACHE can move.
package environment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Repository is the root of the checkout that the current folder is in.
func Repository() (string, error) {
	directory, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for each := directory; ; each = filepath.Dir(each) {
		if _, err := os.Stat(filepath.Join(each, "hack", "cluster", "cluster")); err == nil {
			return each, nil
		}
		if each == filepath.Dir(each) {
			return "", fmt.Errorf("the folder %s is not inside a checkout of the repository", directory)
		}
	}
}

// Cache is the folder of everything that is built or downloaded.
func Cache(repository string) (string, error) {
	if cache := os.Getenv("CRYPTO_BROKER_CACHE"); cache != "" {
		return filepath.Abs(cache)
	}
	return filepath.Join(repository, ".cache"), nil
}

// Command runs a program in a folder and returns what it wrote to its standard output. Its standard error goes to
// progress as it is written; without a progress it becomes part of the error. When the context ends, the program is
// asked to end, and killed if it has not after ten seconds.
func Command(ctx context.Context, folder string, progress io.Writer, program string, arguments ...string) (string, error) {
	return command(ctx, folder, nil, nil, progress, program, arguments...)
}

func command(ctx context.Context, folder string, environment []string, input io.Reader, progress io.Writer,
	program string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	command.Dir = folder
	command.Env = append(os.Environ(), environment...)
	command.Stdin = input
	var output, trouble bytes.Buffer
	command.Stdout, command.Stderr = &output, &trouble
	if progress != nil {
		command.Stderr = progress
	}
	err := command.Run()
	if err == nil {
		return output.String(), nil
	}
	line := strings.Join(append([]string{filepath.Base(program)}, arguments...), " ")
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	if said := strings.TrimSpace(trouble.String()); said != "" {
		return output.String(), fmt.Errorf("%s: %w: %s", line, err, said)
	}
	return output.String(), fmt.Errorf("%s: %w", line, err)
}
