// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// debian are the packages of the engine and of the libraries that a small
// installation may lack. They are unpacked into the cache; none is installed.
var debian = []string{
	"podman", "conmon", "runc", "libgpgme11", "libsubid4", "libassuan0", "libgpg-error0", "libseccomp2", "libdevmapper1.02.1", "libglib2.0-0",
}

// python are the packages of the program that runs compose files.
var python = []string{"podman-compose==1.5.0", "PyYAML==6.0.3", "python-dotenv==1.2.4"}

// packages are unpacked programs.
type packages struct {
	root   string // of the Debian packages
	python string // folder of the modules
}

// fetch downloads the packages unless the cache has them.
func fetch(t *testing.T) packages {
	t.Helper()
	key := sha256.Sum256([]byte(strings.Join(debian, " ") + strings.Join(python, " ")))
	folder := filepath.Join(cache(), "deployment", fmt.Sprintf("%x", key[:6]))
	p := packages{filepath.Join(folder, "root"), filepath.Join(folder, "python")}
	if _, err := os.Stat(filepath.Join(folder, "complete")); err == nil {
		return p
	}
	t.Logf("downloading Podman into %s (once)", folder)
	archives, state := filepath.Join(folder, "archives"), filepath.Join(folder, "apt")
	for _, made := range []string{archives, p.root, filepath.Join(state, "lists", "partial"), filepath.Join(state, "archives", "partial")} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// apt gets lists and a cache of its own, so that the machine's own stay.
	apt := []string{"-q", "-o", "Acquire::Retries=3", "-o", "Dir::State::lists=" + filepath.Join(state, "lists"), "-o", "Dir::Cache=" + state, "-o", "APT::Sandbox::User=root"}
	command(t, archives, "apt-get", append(apt, "update")...)
	command(t, archives, "apt-get", append(append(apt, "download"), debian...)...)
	debs, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil || len(debs) != len(debian) {
		t.Fatalf("downloaded %q, %v, expected %q", debs, err, debian)
	}
	for _, deb := range debs {
		command(t, archives, "dpkg-deb", "--extract", deb, p.root)
	}
	command(t, folder, "python3", append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", p.python}, python...)...)
	if err := os.WriteFile(filepath.Join(folder, "complete"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// command runs a program in a folder; it has to succeed.
func command(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	program := exec.CommandContext(t.Context(), name, args...)
	program.Dir = folder
	if output, err := program.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, output)
	}
}
