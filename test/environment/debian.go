// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// DebianPackage returns the folder with the files of a package of Debian, below a cache. The first use of a cache
// downloads the package with apt-get and unpacks it. It does not install it, so no service starts.
func DebianPackage(ctx context.Context, progress io.Writer, cache, name string) (string, error) {
	return debianFolder(ctx, progress, cache, name, func(string) []string { return []string{"download", name} })
}

// DebianPackageWithLibraries is DebianPackage with the packages that it depends on and that the system lacks, in the same
// folder.
func DebianPackageWithLibraries(ctx context.Context, progress io.Writer, cache, name string) (string, error) {
	return debianFolder(ctx, progress, cache, name, func(folder string) []string {
		return []string{
			"install", "--download-only", "--yes", "--no-install-recommends", "--option=Dir::Cache::archives=" + folder, "--option=Debug::NoLocking=1", name,
		}
	})
}

// debianFolder returns the folder of a package. The first time it runs apt-get in a folder, into which it downloads packages,
// and unpacks them.
func debianFolder(ctx context.Context, progress io.Writer, cache, name string, arguments func(folder string) []string) (string, error) {
	folder := filepath.Join(cache, name)
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return "", fmt.Errorf("there is no apt-get to download the package %s with: %w", name, err)
	}
	fmt.Fprintf(progress, "%s: downloading Debian's package (once)\n", name)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	// The package moves to its place when it is unpacked completely, so an interrupted download leaves nothing there.
	work, err := os.MkdirTemp(cache, name+"-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := os.Mkdir(filepath.Join(work, "partial"), 0o755); err != nil { // apt-get needs this folder
		return "", err
	}
	const retries = "--option=Acquire::Retries=3" // an archive may not answer once
	download := func() error {
		_, err := Command(ctx, work, nil, "apt-get", append([]string{retries}, arguments(work)...)...)
		return err
	}
	if err := download(); err != nil {
		// The machine's package lists may be old or absent. apt-get does not wait for another one that updates them.
		if _, err := Command(ctx, "", nil, "flock", "/var/lib/apt/lists", "apt-get", retries, "update"); err != nil {
			return "", err
		}
		if err := download(); err != nil {
			return "", err
		}
	}
	found, err := filepath.Glob(filepath.Join(work, name+"_*.deb"))
	if err != nil || len(found) != 1 {
		return "", errors.Join(fmt.Errorf("found the packages %q after the download, expected one", found), err)
	}
	packages, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil {
		return "", err
	}
	unpacked := filepath.Join(work, "unpacked")
	for _, file := range packages {
		if _, err := Command(ctx, "", nil, "dpkg-deb", "--extract", file, unpacked); err != nil {
			return "", err
		}
	}
	err = os.Rename(unpacked, folder)
	if _, there := os.Stat(folder); there == nil {
		return folder, nil // another test may have unpacked it
	}
	return folder, err
}
