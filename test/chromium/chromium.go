// SPDX-License-Identifier: Apache-2.0

// Package chromium finds a Chromium without a window for tests of pages, from Debian's packages. It installs
// nothing on the system.
package chromium

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// name is the name of Debian's package and of its program.
const name = "chromium-headless-shell"

// Program is a Chromium that can be run.
type Program struct {
	Path string
	// Environment are variables that Chromium needs, beside the variables of the process.
	Environment []string
}

// Find returns the program in PATH, or else the program of Debian's package. It downloads the package, with the packages that
// it needs and the system lacks, into the cache folder once.
func Find(ctx context.Context, progress io.Writer, cache string) (Program, error) {
	if found, err := exec.LookPath(name); err == nil {
		return Program{Path: found}, nil
	}
	folder, err := environment.DebianPackageWithLibraries(ctx, progress, cache, name)
	if err != nil {
		return Program{}, fmt.Errorf("there is no %s in PATH: %w", name, err)
	}
	libraries, err := filepath.Glob(filepath.Join(folder, "usr", "lib", "*-linux-gnu"))
	if err != nil {
		return Program{}, err
	}
	search := []string{}
	for _, folder := range libraries {
		search = append(search, folder, filepath.Join(folder, "pulseaudio"))
	}
	return Program{
		Path:        filepath.Join(folder, "usr", "lib", "chromium", name),
		Environment: []string{"LD_LIBRARY_PATH=" + strings.Join(search, ":")},
	}, nil
}
