// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// writeImage writes the archive of an image that is one of the project's with more files in it.
func writeImage(t testing.TB, archive, image, base string, files map[string]string) {
	t.Helper()
	content := readArchive(t, base)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	must(t, json.Unmarshal([]byte(content["manifest.json"]), &manifest))
	var config map[string]any
	must(t, json.Unmarshal([]byte(content[manifest[0].Config]), &config))
	delete(content, manifest[0].Config)

	layer := archiveOf(t, files)
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(layer)))
	content[digest+".tar"] = layer
	manifest[0].RepoTags, manifest[0].Layers = []string{image}, append(manifest[0].Layers, digest+".tar")
	layers := config["rootfs"].(map[string]any)
	layers["diff_ids"] = append(layers["diff_ids"].([]any), "sha256:"+digest)
	delete(config, "history") // the history belongs to the earlier layers
	described, err := json.Marshal(config)
	must(t, err)
	manifest[0].Config = fmt.Sprintf("%x.json", sha256.Sum256(described))
	content[manifest[0].Config] = string(described)
	listed, err := json.Marshal(manifest)
	must(t, err)
	content["manifest.json"] = string(listed)
	must(t, os.WriteFile(archive, []byte(archiveOf(t, content)), 0o600))
}

// readArchive reads the files of the archive of one of the project's images.
func readArchive(t testing.TB, image string) map[string]string {
	t.Helper()
	at := slices.IndexFunc(shared.Images.Archives, func(archive string) bool { return strings.Contains(archive, "/"+image+"-") })
	if at < 0 {
		t.Fatalf("there is no archive of %s among %q", image, shared.Images.Archives)
	}
	file, err := os.Open(shared.Images.Archives[at])
	must(t, err)
	defer file.Close()
	content := map[string]string{}
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return content
		}
		must(t, err)
		data, err := io.ReadAll(archive)
		must(t, err)
		content[header.Name] = string(data)
	}
}

// archiveOf is a tar archive of files.
func archiveOf(t testing.TB, files map[string]string) string {
	t.Helper()
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		must(t, archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}))
		_, err := archive.Write([]byte(files[name]))
		must(t, err)
	}
	must(t, archive.Close())
	return buffer.String()
}
