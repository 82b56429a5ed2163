// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// maxManifest is the size in bytes up to which a file is read.
const maxManifest = 64 << 20

// document is one of a stream of YAML documents.
type document struct {
	// place says where it is, for messages: "app.yaml, document 2".
	place string
	// raw is the document as it was written, with its comments.
	raw []byte
	// object is nil for a document that has nothing in it.
	object map[string]any
}

func (d document) text(path ...string) string {
	value := any(d.object)
	for _, key := range path {
		fields, ok := value.(map[string]any)
		if !ok {
			return ""
		}
		value = fields[key]
	}
	text, _ := value.(string) // a value of another type is no text
	return text
}

// filesFlag adds -f.
func filesFlag(cmd *cobra.Command) *[]string {
	return cmd.Flags().StringSliceP("filename", "f", nil, "`file` or directory with manifests in YAML or JSON, - for standard input; can be given several times")
}

// readDocuments reads all documents of files; of a directory those of its files
// that end in .yaml, .yml or .json, in the order of their names.
func readDocuments(files []string, stdin io.Reader) ([]document, error) {
	if len(files) == 0 {
		return nil, usagef("no manifest given: expected -f FILE, or -f - for standard input")
	}
	var all []document
	for _, file := range files {
		paths := []string{file}
		if info, err := os.Stat(file); file != "-" && err == nil && info.IsDir() {
			entries, err := os.ReadDir(file)
			if err != nil {
				return nil, err
			}
			paths = nil
			for _, entry := range entries {
				if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) && !entry.IsDir() {
					paths = append(paths, filepath.Join(file, entry.Name()))
				}
			}
			if len(paths) == 0 {
				return nil, fmt.Errorf("%s has no file that ends in .yaml, .yml or .json", file)
			}
		}
		for _, path := range paths {
			documents, err := readFile(path, stdin)
			if err != nil {
				return nil, err
			}
			all = append(all, documents...)
		}
	}
	return all, nil
}

func readFile(path string, stdin io.Reader) ([]document, error) {
	name, in := path, stdin
	if path == "-" {
		name = "standard input"
	} else {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxManifest)
	}
	var all []document
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 1; ; n++ {
		raw, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		d := document{place: fmt.Sprintf("%s, document %d", name, n), raw: raw}
		if err := yaml.UnmarshalStrict(raw, &d.object); err != nil {
			return nil, fmt.Errorf("%s: %w", d.place, err)
		}
		all = append(all, d)
	}
	if len(all) == 1 {
		all[0].place = name
	}
	return all, nil
}

// items are the objects in a document: those of a List, or the one it is.
func (d document) items() []document {
	list, is := d.object["items"].([]any)
	if !is || d.text("kind") != "List" {
		return []document{d}
	}
	var all []document
	for i, item := range list {
		object, _ := item.(map[string]any) // what is no object is left out and stays as it is
		if object != nil {
			all = append(all, document{place: fmt.Sprintf("%s, items[%d]", d.place, i), object: object})
		}
	}
	return all
}
