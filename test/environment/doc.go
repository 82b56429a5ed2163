// SPDX-License-Identifier: Apache-2.0

// Package environment prepares what the demo and the end-to-end tests need: a cluster, the container images and the
// installed chart. It runs the same commands as a user, and shows their progress.
//
// It keeps everything that it builds or downloads in the cache folder of the repository. The environment variable
// CRYPTO_BROKER_CACHE can name another folder.
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

// Repository returns the root of the checkout of the current folder.
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

// Cache returns the folder for everything that is built or downloaded.
func Cache(repository string) (string, error) {
	if cache := os.Getenv("CRYPTO_BROKER_CACHE"); cache != "" {
		return filepath.Abs(cache)
	}
	return filepath.Join(repository, ".cache"), nil
}

// Command runs a program in a folder and returns its standard output. Its standard error goes to progress at once; if
// progress is nil, it becomes part of the error. When the context ends, Command asks the program to end, and kills it
// after ten seconds.
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
