// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// stating are the files that state the version, each with a regular expression for the line. One number is for all parts of a
// release, so that nobody has to know which client fits which chart.
var stating = []struct {
	file    string
	version *regexp.Regexp
}{
	{"charts/crypto-broker-operator/Chart.yaml", regexp.MustCompile(`(?m)^version: (\S+)$`)},
	{"charts/crypto-broker-operator/Chart.yaml", regexp.MustCompile(`(?m)^appVersion: (\S+)$`)},
	{"clients/js/package.json", regexp.MustCompile(`(?m)^  "version": "([^"]+)",$`)},
	{"clients/js/package-lock.json", regexp.MustCompile(`(?m)^  "version": "([^"]+)",$`)},
	{"clients/python/pyproject.toml", regexp.MustCompile(`(?m)^version = "([^"]+)"$`)},
	{"clients/java/pom.xml", regexp.MustCompile(`(?m)^  <version>([^<]+)</version>$`)},
	{"clients/rust/Cargo.toml", regexp.MustCompile(`(?m)^version = "([^"]+)"$`)},
}

// semantic matches a version by Semantic Versioning 2.0.0 without build metadata, which a chart's labels do not take.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// releasedFrom returns the commit from which a version was released, or nothing if the file of released versions does not have it.
func releasedFrom(versions, version string) string {
	for line := range strings.Lines(versions) {
		if name, commit, found := strings.Cut(strings.TrimSpace(line), " "); found && name == version {
			return commit
		}
	}
	return ""
}

// statedVersion returns the version that the files of a checkout state, with a v in front. It returns an error if two
// of them differ.
func statedVersion(root string) (string, error) {
	version, first := "", ""
	for _, place := range stating {
		text, err := os.ReadFile(filepath.Join(root, place.file))
		if err != nil {
			return "", err
		}
		found := place.version.FindSubmatch(text)
		if found == nil {
			return "", fmt.Errorf("%s states no version, expected a line that matches %s", place.file, place.version)
		}
		switch stated := string(found[1]); {
		case !semantic.MatchString(stated):
			return "", fmt.Errorf("%s states the version %q, expected one such as 1.2.3 or 1.2.3-rc.1", place.file, stated)
		case version == "":
			version, first = stated, place.file
		case stated != version:
			return "", fmt.Errorf("%s states the version %s and %s states %s, expected the same", first, version, place.file, stated)
		}
	}
	return "v" + version, nil
}
