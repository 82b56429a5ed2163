// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/commandline"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// version is set when a release is built: -ldflags "-X main.version=v1.2.3".
var version string

// build describes the source of a program.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"git_sha"`
}

// built returns the build of this program: the version of the release, or else the commit that
// the Go toolchain has recorded.
func built() build {
	b := build{program.Version(version), "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				b.Commit = setting.Value
			}
		}
	}
	return b
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of command line and client as JSON",
		Args:  commandline.Arguments(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The client is a part of this program, so it has the same version.
			return commandline.WriteJSON(cmd.OutOrStdout(), struct {
				CLI      build             `json:"cli"`
				Client   build             `json:"client"`
				Go       string            `json:"go"`
				Platform string            `json:"platform"`
				FIPS     engine.FIPSStatus `json:"fips"`
			}{built(), built(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, engine.FIPS()})
		},
	}
}
