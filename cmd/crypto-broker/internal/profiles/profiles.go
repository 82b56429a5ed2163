// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/subcommands"
)

// New returns the command profiles.
func New() *cobra.Command {
	profiles := &cobra.Command{
		Use:   "profiles",
		Short: "Check profile files, and show the strength of profiles",
	}
	profiles.AddCommand(newValidate(), newShow())
	subcommands.Only(profiles)
	return profiles
}

// fipsFlag gives a command the flag --require-fips.
func fipsFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("require-fips", false, "check as a broker with --require-fips: refuse operations that FIPS 140-3 does not approve, and profiles without any other")
}

// source is a profile file that was read.
type source struct {
	name string
	data []byte
}

// read reads a profile file, the profile file of a directory, or standard input.
func read(argument string, stdin io.Reader) (source, error) {
	if argument == commandline.StandardInput {
		data, err := io.ReadAll(io.LimitReader(stdin, profile.MaxFileSize+1))
		return source{"<stdin>", data}, err
	}
	name := argument
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		name = filepath.Join(name, profile.FileName)
	}
	file, err := os.Open(name)
	if err != nil {
		return source{}, err
	}
	defer func() { _ = file.Close() }() // it was only read
	// One byte more than allowed, so that the compiler refuses a file that is too large.
	data, err := io.ReadAll(io.LimitReader(file, profile.MaxFileSize+1))
	return source{name, data}, err
}

// compile compiles a source as a broker does.
func (s source) compile(requireFIPS bool) (*profile.Set, profile.Problems) {
	if requireFIPS {
		return profile.Compile(s.name, s.data, profile.RequireFIPS())
	}
	return profile.Compile(s.name, s.data)
}
