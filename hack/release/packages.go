// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// imagesWithOpenSSL are the images that have packages of Debian, too.
var imagesWithOpenSSL = []string{"broker-openssl", "gateway-openssl"}

// images builds an archive of an OCI image layout for each program that runs in clusters. Packages of Debian have to be
// the packages of the lock file, so that the same commit gives the same bytes, and never an outdated OpenSSL.
func (r *release) images(ctx context.Context) (err error) {
	if r.debian, err = debianPackages(r.root); err != nil {
		return err
	}
	folder := filepath.Join(r.out, "images")
	names := append([]string{"broker", "operator", "gateway", "cli"}, imagesWithOpenSSL...)
	if _, err := output(ctx, r.root, "hack/image/build", "--oci", "--arch", "amd64,arm64", "--only", strings.Join(names, ","),
		"--tag", imageTag(r.version), "--version", r.version, "--locked", "--out", folder); err != nil {
		return err
	}
	if err := r.billsOfImages(folder); err != nil {
		return err
	}
	return r.lift("images", ".oci.tar")
}

// imageTag returns the tag of the images of a version: the appVersion of its chart, which asks for them by it.
func imageTag(version string) string { return strings.TrimPrefix(version, "v") }

// lift moves the files with a suffix from a subfolder of the release into the release, with the name of the project in front. Then
// it removes the subfolder with all other files.
func (r *release) lift(folder, suffix string) error {
	from := filepath.Join(r.out, folder)
	found, err := filepath.Glob(filepath.Join(from, "*"+suffix))
	if err != nil {
		return err
	}
	for _, each := range found {
		if err := os.Rename(each, filepath.Join(r.out, "image-"+filepath.Base(each))); err != nil {
			return err
		}
	}
	return os.RemoveAll(from)
}

// chart packs the Helm chart. Helm writes the time into its archive, so the files are packed again without it.
func (r *release) chart(ctx context.Context) (err error) {
	helm, err := output(ctx, r.root, "hack/tools/build", "helm")
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "chart")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if _, err := output(ctx, r.root, helm, "package", "charts/crypto-broker-operator", "--destination", folder); err != nil {
		return err
	}
	name := "crypto-broker-operator-" + strings.TrimPrefix(r.version, "v") + ".tgz"
	packed, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return err
	}
	again, err := repack(packed)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(filepath.Join(r.out, name), again, 0o644)
}

// repack packs the files of an archive again.
func repack(archive []byte) ([]byte, error) {
	files, err := unpack(archive)
	if err != nil {
		return nil, err
	}
	return tarGz(files)
}

// unpack returns the files of an archive. Links and folders are an error.
func unpack(archive []byte) (files []file, err error) {
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("found %q, which is not a regular file", header.Name)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return nil, err
		}
		files = append(files, file{header.Name, 0o644, content})
	}
}

// holds returns an error if an archive has no file of this name, because npm packs a package that was not built without any error.
func holds(archive, name string) error {
	content, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	files, err := unpack(content)
	if err == nil && !slices.ContainsFunc(files, func(f file) bool { return f.name == name }) {
		err = fmt.Errorf("%s has no %s", archive, name)
	}
	return err
}

// clients packs the clients as their registries take them. The Go client needs no file: its version is the tag
// clients/go/vX.Y.Z.
func (r *release) clients(ctx context.Context) error {
	js := filepath.Join(r.root, "clients", "js")
	if _, err := output(ctx, r.root, "hack/tools/packages", "clients/js"); err != nil {
		return err
	}
	if _, err := output(ctx, js, "npm", "run", "--silent", "build"); err != nil {
		return err
	}
	packed, err := output(ctx, js, "npm", "pack", "--silent", "--pack-destination", r.out)
	if err != nil {
		return err
	}
	if err := holds(filepath.Join(r.out, packed), "package/dist/index.js"); err != nil {
		return err
	}
	venv, err := output(ctx, r.root, "hack/tools/venv", "clients/python/requirements.txt")
	if err != nil {
		return err
	}
	python := exec.CommandContext(ctx, filepath.Join(venv, "bin", "python"), "-m", "hatchling", "build", "--directory", r.out)
	python.Dir = filepath.Join(r.root, "clients", "python")
	// Zip archives, which Python packages are, cannot have times before 1980. hatchling uses this time for all files.
	python.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.at.Unix()))
	_, err = printed(python)
	return err
}
