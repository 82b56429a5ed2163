// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// debianRelease is the release of Debian whose packages hack/image takes, by number.
const debianRelease = "debian-12"

// debianPackage is a package of Debian in the images with OpenSSL.
type debianPackage struct{ name, version, arch, sha256 string }

// debianPackages reads the file that locks the packages.
func debianPackages(root string) (packages []debianPackage, err error) {
	file := filepath.Join(root, "hack", "image", "debian.lock")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 4 || !strings.HasPrefix(fields[3], "sha256:") {
			return nil, fmt.Errorf("%s: found the line %q, expected a name, a version, an architecture and a digest", file, strings.TrimSpace(line))
		}
		packages = append(packages, debianPackage{fields[0], fields[1], fields[2], strings.TrimPrefix(fields[3], "sha256:")})
	}
	return packages, nil
}

// purl returns the package URL.
func (p debianPackage) purl() string {
	return "pkg:deb/debian/" + p.name + "@" + url.QueryEscape(p.version) + "?arch=" + p.arch + "&distro=" + debianRelease
}

// component returns the package for a bill of materials. The digest is the digest of the package's file.
func (p debianPackage) component() cyclonedx.Component {
	return cyclonedx.Component{
		BOMRef: p.purl(), Type: cyclonedx.ComponentTypeLibrary, Name: p.name, Version: p.version, PackageURL: p.purl(),
		Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: p.sha256}},
	}
}

// billsOfImages writes a bill of materials for each image with OpenSSL and each architecture: the modules of its program,
// and the packages of Debian. folder has the programs, as hack/image leaves them.
func (r *release) billsOfImages(folder string) error {
	for _, p := range linux {
		var components []cyclonedx.Component
		for _, each := range r.debian {
			if each.arch == p.arch {
				components = append(components, each.component())
			}
		}
		for _, image := range imagesWithOpenSSL {
			name := fmt.Sprintf("image-%s-%s-%s-%s", image, r.version, p.os, p.arch)
			bill, err := billOf(name, filepath.Join(folder, "bin", p.arch, image), r.version, r.at, components...)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(r.out, name+".cdx.json"), bill, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
