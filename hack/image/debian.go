// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// What programs with OpenSSL need of Debian: the loader with the C library, and OpenSSL.
const debianRelease = "bookworm"

var debianPackages = []string{"libc6", "libssl3"}

// lockFile has the packages of releases, in the repository.
const lockFile = "hack/image/debian.lock"

const lockHeader = "# The packages of Debian in the images with OpenSSL of a release, with the SHA-256 of their files.\n" +
	"# hack/image/build --write-lock writes this file.\n"

// keyring has the keys of Debian's archive. apt-get checks the lists of packages with them.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// debianPackage is a package of Debian that was downloaded.
type debianPackage struct {
	name, version, arch, sum string
	file                     string
}

// line returns the line of the package in the lock file.
func (p debianPackage) line() string {
	return strings.Join([]string{p.name, p.version, p.arch, "sha256:" + p.sum}, " ") + "\n"
}

// downloadDebian downloads the packages for an architecture into a folder, with the sources of the machine and lists of
// packages of its own. They are the newest ones that Debian has.
func downloadDebian(folder, arch string) ([]debianPackage, error) {
	if _, err := os.Stat(keyring); err != nil {
		return nil, fmt.Errorf("the keys of Debian, from the package debian-archive-keyring: %w", err)
	}
	for _, each := range []string{"lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(folder, each), 0o755); err != nil {
			return nil, err
		}
	}
	sources, err := debianSources()
	if err != nil {
		return nil, err
	}
	list := filepath.Join(folder, "sources.list")
	if err := os.WriteFile(list, []byte(sources), 0o644); err != nil {
		return nil, err
	}
	options := []string{"--quiet=2", "--option=Acquire::Retries=3"}
	for _, each := range []string{
		"Dir::Etc::SourceList=" + list, "Dir::Etc::SourceParts=-", "Dir::State::Lists=" + filepath.Join(folder, "lists"), "Dir::State::Status=/dev/null",
		"Dir::Cache=" + folder, "APT::Architecture=" + arch, "APT::Architectures=" + arch, "APT::Sandbox::User=", "Acquire::Languages=none",
	} {
		options = append(options, "--option="+each)
	}
	if _, err := command(folder, "apt-get", append(slices.Clone(options), "update")...); err != nil {
		return nil, err
	}
	if _, err := command(folder, "apt-get", append(append(slices.Clone(options), "download"), debianPackages...)...); err != nil {
		return nil, err
	}
	var packages []debianPackage
	for _, name := range debianPackages {
		found, err := filepath.Glob(filepath.Join(folder, name+"_*_"+arch+".deb"))
		if err != nil || len(found) != 1 {
			return nil, errors.Join(fmt.Errorf("found the files %q of Debian's package %s, expected one", found, name), err)
		}
		content, err := os.ReadFile(found[0])
		if err != nil {
			return nil, err
		}
		version, err := command(folder, "dpkg-deb", "--field", found[0], "Version")
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		packages = append(packages, debianPackage{name, strings.TrimSpace(string(version)), arch, hex.EncodeToString(sum[:]), found[0]})
	}
	return packages, nil
}

// debianSources returns the archives of Debian's release from the sources of this machine, in apt's form. They may be mirrors, so
// each line requires that Debian has signed the archive.
func debianSources() (string, error) {
	// Without this option, apt-get would leave out archives whose lists the machine does not have yet.
	targets, err := command("", "apt-get", "indextargets", "--no-release-info", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
	if err != nil {
		return "", err
	}
	var sources strings.Builder
	lines := slices.Sorted(strings.Lines(string(targets)))
	for _, line := range slices.Compact(lines) {
		fields := strings.Fields(line)
		if len(fields) == 3 && strings.HasPrefix(fields[1]+"-", debianRelease+"-") && fields[2] == "main" {
			fmt.Fprintf(&sources, "deb [signed-by=%s] %s\n", keyring, strings.Join(fields, " "))
		}
	}
	if sources.Len() == 0 {
		return "", fmt.Errorf("the sources of apt-get have no archive of Debian %s with the component main, expected one in /etc/apt", debianRelease)
	}
	return sources.String(), nil
}

// checkLock returns an error if the packages are not the packages of the lock file.
func checkLock(source string, packages []debianPackage) error {
	locked, err := os.ReadFile(filepath.Join(source, lockFile))
	if err != nil {
		return err
	}
	for _, each := range packages {
		if !strings.Contains("\n"+string(locked), "\n"+each.line()) {
			return fmt.Errorf("the packages: Debian has %q, and %s has no such line: with --write-lock, hack/image/build writes the packages of today into it",
				strings.TrimSpace(each.line()), lockFile)
		}
	}
	return nil
}

// writeLock writes the packages that Debian has now into the lock file.
func writeLock(o options) error {
	text := lockHeader
	for _, arch := range []string{"amd64", "arm64"} {
		err := inFolder(func(folder string) error {
			packages, err := downloadDebian(folder, arch)
			for _, each := range packages {
				text += each.line()
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(o.source, lockFile), []byte(text), 0o644)
}

// inFolder runs a function with a folder that is removed after it.
func inFolder(f func(folder string) error) (err error) {
	folder, err := os.MkdirTemp("", "debian-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	return f(folder)
}

// debianLayerFor returns debianLayer if an image of these options needs it.
func debianLayerFor(o options) ([]byte, error) {
	if !slices.ContainsFunc(o.programs, func(each program) bool { return each.openssl }) {
		return nil, nil
	}
	return debianLayer(o)
}

// debianLayer returns an archive with the files of the packages, and with what scanners of images read: the fields of each
// package below /var/lib/dpkg/status.d, where images of one program without a package manager have them.
func debianLayer(o options) (content []byte, err error) {
	err = inFolder(func(folder string) error {
		progress("downloading %s of Debian %s for %s", strings.Join(debianPackages, " and "), debianRelease, o.arch)
		packages, err := downloadDebian(folder, o.arch)
		if err != nil {
			return err
		}
		if o.locked {
			if err := checkLock(o.source, packages); err != nil {
				return err
			}
		}
		content, err = unpackDebian(packages)
		return err
	})
	return content, err
}

func unpackDebian(packages []debianPackage) ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	written := map[string]bool{}
	add := func(header tar.Header, content []byte) error {
		if written[header.Name] { // a folder that several packages have
			return nil
		}
		written[header.Name] = true
		header.ModTime, header.Format = time.Unix(0, 0), tar.FormatUSTAR
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	for _, each := range packages {
		progress("%s", strings.TrimSpace(each.line()))
		fields, err := command("", "dpkg-deb", "--field", each.file)
		if err != nil {
			return nil, err
		}
		files, err := command("", "dpkg-deb", "--fsys-tarfile", each.file)
		if err != nil {
			return nil, err
		}
		for reader := tar.NewReader(bytes.NewReader(files)); ; {
			header, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", each.file, err)
			}
			name := strings.TrimPrefix(header.Name, "./")
			if name == "" || unwanted(name) {
				continue
			}
			content, err := io.ReadAll(reader)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", each.file, err)
			}
			if err := add(tar.Header{Name: name, Typeflag: header.Typeflag, Linkname: header.Linkname, Mode: header.Mode, Size: int64(len(content))}, content); err != nil {
				return nil, err
			}
		}
		if err := add(tar.Header{Name: "var/lib/dpkg/status.d/" + each.name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(fields))}, fields); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return buffer.Bytes(), err
}

// unwanted reports whether a file is left out: documentation without the license, and converters of character sets.
func unwanted(name string) bool {
	return strings.HasPrefix(name, "usr/share/") && path.Base(name) != "copyright" || strings.Contains(name, "/gconv/")
}

// command runs a program in a folder and returns what it prints.
func command(folder, name string, arguments ...string) ([]byte, error) {
	program := exec.Command(name, arguments...)
	program.Dir = folder
	output, err := program.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w", name, strings.Join(arguments, " "), withStderr(err))
	}
	return output, err
}
