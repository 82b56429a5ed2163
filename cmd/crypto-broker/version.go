// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// version is set when a release is built: -ldflags "-X main.version=v1.2.3".
var version string

func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version as JSON",
		Args:  arguments(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return writeJSON(cmd.OutOrStdout(), struct {
				Version  string            `json:"version"`
				Go       string            `json:"go"`
				Platform string            `json:"platform"`
				FIPS     engine.FIPSStatus `json:"fips"`
			}{programVersion(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, engine.FIPS()})
		},
	}
}
