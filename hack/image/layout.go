// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// refName is the annotation by which tools find an image of a layout (OCI Image Format Specification 1.1,
// annotations).
const refName = "org.opencontainers.image.ref.name"

// writeLayouts writes an archive of an OCI image layout for each program. Its only image is an index with the image of
// each architecture.
func writeLayouts(o options, version string) error {
	indexes := map[string]v1.ImageIndex{}
	for arch := range strings.SplitSeq(o.arch, ",") {
		one := o
		one.arch = arch
		progress("building %s for linux/%s, version %s", programNames(o.programs), arch, version)
		binaries, err := buildPrograms(one, version)
		if err != nil {
			return err
		}
		debian, err := debianLayerFor(one)
		if err != nil {
			return err
		}
		for _, each := range o.programs {
			image, err := pack(each, binaries[each.name], debian, one, version)
			if err != nil {
				return fmt.Errorf("pack %s: %w", each.name, err)
			}
			if indexes[each.name] == nil {
				indexes[each.name] = empty.Index
			}
			indexes[each.name] = mutate.AppendManifests(indexes[each.name], mutate.IndexAddendum{
				Add:        image,
				Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
			})
		}
	}
	for _, each := range o.programs {
		path := filepath.Join(o.out, each.name+"-"+o.tag+".oci.tar")
		if err := writeLayout(path, o.tag, indexes[each.name]); err != nil {
			return fmt.Errorf("write the image %s to %s: %w", each.name, path, err)
		}
		fmt.Printf("%s:%s\t%s\n", each.name, o.tag, path)
	}
	return nil
}

// writeLayout writes an OCI image layout as an archive. The same index gives the same bytes.
func writeLayout(path, tag string, index v1.ImageIndex) (err error) {
	folder, err := os.MkdirTemp(filepath.Dir(path), ".layout-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	whole := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add:        index,
		Descriptor: v1.Descriptor{Annotations: map[string]string{refName: tag}},
	})
	if _, err := layout.Write(folder, whole); err != nil {
		return err
	}
	return archiveFolder(path, folder)
}

// archiveFolder writes the files of a folder to an archive, in the order of their names and without times and owners.
func archiveFolder(path, folder string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	archive := tar.NewWriter(file)
	err = filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		header := tar.Header{
			Name: filepath.ToSlash(inside), Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content)),
			ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	return errors.Join(err, archive.Close())
}

// ociLayer compresses a layer, as registries store it.
func ociLayer(content []byte) (v1.Layer, error) {
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
}
