// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// MaxManifest is the largest size of a file, in bytes.
const MaxManifest = 64 << 20

// FilesFlag adds the flag -f.
func FilesFlag(cmd *cobra.Command) *[]string {
	files := cmd.Flags().StringSliceP("filename", "f", nil, "`file` or directory with manifests in YAML or JSON, - for standard input; can be given several times")
	cobra.CheckErr(cmd.MarkFlagFilename("filename", "yaml", "yml", "json"))
	return files
}

// ReadObjects reads all documents of files. Each has to be an object or empty.
func ReadObjects(files []string, stdin io.Reader) ([]Document, error) {
	all, err := ReadDocuments(files, stdin)
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		switch {
		case d.Bad != "":
			return nil, fmt.Errorf("%s: %s", d.Place, d.Bad)
		case d.Set:
			return nil, fmt.Errorf("%s is a file of profiles, as a broker reads it, expected manifests of Kubernetes: kubectl crypto-broker validate checks such a file", d.Place)
		}
	}
	return all, nil
}

// ReadDocuments reads all documents of files. In a directory it reads the files that end in
// .yaml, .yml or .json, in the order of their names. A file without any object is an error,
// because it is probably the wrong file.
func ReadDocuments(files []string, stdin io.Reader) ([]Document, error) {
	if len(files) == 0 {
		return nil, program.Usagef("no manifest given: expected -f FILE, or -f - for standard input")
	}
	var all []Document
	for _, file := range files {
		paths := []string{file}
		if info, err := os.Stat(file); file != "-" && err == nil && info.IsDir() {
			if paths, err = manifestsIn(file); err != nil {
				return nil, err
			}
		}
		something := false
		for _, path := range paths {
			documents, err := readFile(path, stdin)
			if err != nil {
				return nil, err
			}
			something = something || slices.ContainsFunc(documents, func(d Document) bool { return d.Object != nil || d.Set || d.Bad != "" })
			all = append(all, documents...)
		}
		if !something {
			return nil, fmt.Errorf("%s has no object in it, expected manifests of Kubernetes", placeOf(file))
		}
	}
	return all, nil
}

// manifestsIn returns the paths of the manifests in a directory.
func manifestsIn(directory string) (paths []string, err error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) && !entry.IsDir() {
			paths = append(paths, filepath.Join(directory, entry.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no file that ends in .yaml, .yml or .json; directories in it are not read", directory)
	}
	return paths, nil
}

// placeOf returns the name of a file for messages.
func placeOf(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

func readFile(path string, stdin io.Reader) ([]Document, error) {
	name, in := placeOf(path), stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, MaxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > MaxManifest {
		return nil, fmt.Errorf("%s has more than %d MiB, expected manifests", name, MaxManifest>>20)
	}
	if data, err = text(data); err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	return documentsOf(name, data), nil
}

// The byte order marks at the beginning of files from Windows.
var (
	markUTF8    = []byte("\xef\xbb\xbf")
	markUTF16LE = []byte("\xff\xfe")
	markUTF16BE = []byte("\xfe\xff")
)

// text returns data without its byte order mark. The error continues a sentence that
// begins with the name of the file.
func text(data []byte) ([]byte, error) {
	if bytes.HasPrefix(data, markUTF16LE) || bytes.HasPrefix(data, markUTF16BE) {
		return nil, fmt.Errorf("is text in UTF-16, as PowerShell writes it, expected YAML or JSON in UTF-8")
	}
	data = bytes.TrimPrefix(data, markUTF8)
	if at := bytes.IndexByte(data, 0); at >= 0 {
		return nil, fmt.Errorf("is not text: found a zero byte at offset %d, expected YAML or JSON", at)
	}
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return nil, fmt.Errorf("is not text in UTF-8: found the byte %#02x at offset %d, expected YAML or JSON", data[at], at)
		}
		at += size
	}
	return data, nil
}
