// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// PythonPackage is a package that pip installs.
type PythonPackage struct {
	Name, Version string
	// Also are requirements of pip that are installed with it.
	Also []string
	// SHA256 is the digest of the only file of the package that is installed, in hexadecimal
	// digits. Then what the package needs is not installed. If it is empty, pip chooses.
	SHA256 string
}

// Install returns the folder with the package. The first use of a cache installs it with pip.
func (p PythonPackage) Install(ctx context.Context) (string, error) {
	repository, err := Repository()
	if err != nil {
		return "", err
	}
	cache, err := Cache(repository)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, p.Name+"-"+p.Version)
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil { //nolint:gosec // the cache of the repository is not secret
		return "", err
	}
	partial, err := os.MkdirTemp(cache, p.Name+"-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(partial)
	arguments := []string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-script-location",
		"--root-user-action=ignore", "--target", filepath.Join(partial, "content")}
	requirement := p.Name + "==" + p.Version
	if p.SHA256 != "" {
		list := filepath.Join(partial, "requirements.txt")
		if err := os.WriteFile(list, []byte(requirement+" --hash=sha256:"+p.SHA256+"\n"), 0o600); err != nil {
			return "", err
		}
		arguments = append(arguments, "--require-hashes", "--no-deps", "--requirement", list)
	} else {
		arguments = append(append(arguments, requirement), p.Also...)
	}
	cmd := exec.CommandContext(ctx, "python3", arguments...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install %s, for which python3 with pip is needed: %w\n%s", requirement, err, output)
	}
	if err := os.Rename(filepath.Join(partial, "content"), folder); err != nil && !os.IsExist(err) { // another test may have been quicker
		return "", err
	}
	return folder, nil
}
