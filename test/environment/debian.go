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
	download := func() error {
		_, err := Command(ctx, work, nil, "apt-get", "download", name)
		return err
	}
	if err := download(); err != nil {
		// The machine's package lists may be old or absent.
		if _, err := Command(ctx, "", nil, "apt-get", "update"); err != nil {
			return "", err
		}
		if err := download(); err != nil {
			return "", err
		}
	}
	packages, err := filepath.Glob(filepath.Join(work, name+"_*.deb"))
	if err != nil || len(packages) != 1 {
		return "", errors.Join(fmt.Errorf("found the packages %q after the download, expected one", packages), err)
	}
	unpacked := filepath.Join(work, "unpacked")
	if _, err := Command(ctx, "", nil, "dpkg-deb", "--extract", packages[0], unpacked); err != nil {
		return "", err
	}
	err = os.Rename(unpacked, folder)
	if _, there := os.Stat(folder); there == nil {
		return folder, nil // maybe from another test
	}
	return folder, err
}
