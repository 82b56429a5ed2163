// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/connection"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

const (
	// maxInput is the size of the largest input of the operations, in bytes.
	maxInput = 1 << 20
	// maxKeyFile is the size of the largest key or certificate, in bytes.
	maxKeyFile = 64 << 10
)

// inputs reads files and standard input, which can be read only once.
type inputs struct {
	cmd      *cobra.Command
	consumed string // the name of the input for which standard input was read
}

// open opens a file, or standard input.
func (i *inputs) open(what, path string) (io.ReadCloser, error) {
	if path != commandline.StandardInput {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", what, err)
		}
		return file, nil
	}
	if i.consumed != "" {
		return nil, program.Usagef("standard input is named twice, for %s and for %s, expected once", i.consumed, what)
	}
	i.consumed = what
	return io.NopCloser(i.cmd.InOrStdin()), nil
}

// read reads a file, or standard input. It refuses one that is larger than a broker accepts.
func (i *inputs) read(what, path string, limit int64) ([]byte, error) {
	file, err := i.open(what, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", what, err)
	}
	if int64(len(data)) > limit {
		return nil, &connection.Failure{Exit: commandline.ExitRefused, Code: codes.InvalidArgument,
			Message: fmt.Sprintf("%s has more than %d bytes, which is the most that a broker accepts", what, limit)}
	}
	return data, nil
}

// dataArgument describes the argument that dataFlag can replace.
func dataArgument(what string) string { return what + ", - for standard input, or none and --file" }

// dataFlag gives a command a flag for a file that replaces an argument.
func dataFlag(cmd *cobra.Command, what string) *string {
	return cmd.Flags().String("file", "", "file with "+what+" instead of the argument, - for standard input")
}

// path returns the path of the file with the data, or "" if the argument is the data.
func (i *inputs) path(args []string, file string) (string, error) {
	given := i.cmd.Flags().Changed("file")
	switch {
	case given && len(args) > 0:
		return "", program.Usagef("found the argument and --file, expected one of them")
	case !given && len(args) == 0:
		return "", program.Usagef("found neither the argument nor --file, expected one of them")
	case given:
		return file, nil
	case args[0] == commandline.StandardInput:
		return commandline.StandardInput, nil
	default:
		return "", nil
	}
}

// data returns the argument, or the content of the file that replaces the argument.
func (i *inputs) data(what string, args []string, file string) ([]byte, error) {
	path, err := i.path(args, file)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return []byte(args[0]), nil
	}
	return i.read(what, path, maxInput)
}

// hexData returns the bytes that an argument, or the file that replaces it, has as
// hexadecimal digits.
func (i *inputs) hexData(what string, args []string, file string) ([]byte, error) {
	path, err := i.path(args, file)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return digits(what, args[0])
	}
	text, err := i.read(what, path, 3*maxInput)
	if err != nil {
		return nil, err
	}
	return digits(what, string(text))
}

// digits reads hexadecimal digits, with white space between them. The error does not
// quote them, because they may be a key.
func digits(what, text string) ([]byte, error) {
	packed := bytes.Join(bytes.Fields([]byte(text)), nil)
	data := make([]byte, hex.DecodedLen(len(packed)))
	if _, err := hex.Decode(data, packed); err != nil {
		return nil, program.Usagef("%s is not an even number of hexadecimal digits", what)
	}
	return data, nil
}

// hexFlag reads a flag of hexadecimal digits.
func hexFlag(cmd *cobra.Command, name string) ([]byte, error) {
	return digits("--"+name, cmd.Flag(name).Value.String())
}
