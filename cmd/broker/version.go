// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
)

// version is set when a release is built: -ldflags "-X main.version=v1.2.3".
var version string

// programVersion is the version of this program: that of the release, else what
// the Go toolchain knows of the commit.
func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// versionCommand prints what is running, and on the second line what it computes
// with. Whether FIPS 140-3 is enforced is told for a broker that is started with
// the same environment and without flags.
func versionCommand(args []string, lookup func(string) (string, bool), stdout io.Writer) error {
	var c config
	if len(args) > 0 {
		return usagef("version takes no arguments, found %q", args[0])
	}
	for _, s := range c.settings() {
		if text, ok := lookup(s.env); s.name == "require-fips" && ok && text != "" {
			if err := s.set(text); err != nil {
				return usagef("invalid value %q of the environment variable %s: %v", text, s.env, err)
			}
		}
	}
	enforced := "not enforced"
	if c.requireFIPS {
		enforced = "enforced"
	}
	computing := engine.FIPS()
	_, err := fmt.Fprintf(stdout, "broker %s %s %s/%s\nGo Cryptographic Module %s, FIPS 140-3 mode %s, %s\n",
		programVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH, computing.Module, computing.Mode, enforced)
	return err
}
