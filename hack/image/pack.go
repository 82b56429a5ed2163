// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the user and group of the images: the usual number of the user "nonroot" in images without a base image.
const user = "65532:65532"

// pack makes an image from a program. The image has one layer. With OpenSSL a layer with the files of Debian comes before it, so
// that images share that layer.
func pack(p program, binary string, debian []byte, o options, version string) (v1.Image, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	files, err := layerOf(p.file, content)
	if err != nil {
		return nil, err
	}
	image := empty.Image
	if o.oci {
		image = mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
	}
	layers := [][]byte{files}
	if p.openssl {
		layers = [][]byte{debian, files}
	}
	for _, each := range layers {
		layer := static.NewLayer(each, types.DockerUncompressedLayer)
		if o.oci {
			if layer, err = ociLayer(each); err != nil {
				return nil, err
			}
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", o.arch
	file.Config = v1.Config{
		User:       user,
		Entrypoint: []string{"/" + p.file},
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "Crypto Broker " + p.name,
			"org.opencontainers.image.description": p.summary,
			"org.opencontainers.image.version":     version,
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.source":      "https://github.com/crypto-broker/crypto-broker-operator",
		},
	}
	if o.cover != "" {
		file.Config.Env = []string{"GOCOVERDIR=" + o.cover}
	}
	if p.openssl {
		// A broker in a pod gets no flag for OpenSSL, so the image sets it. The chart sets a flag for the key gateway.
		file.Config.Env = append(file.Config.Env, "CRYPTO_BROKER_TLS_PROVIDER=openssl")
	}
	return mutate.ConfigFile(image, file)
}

// layerOf returns an archive of the program and of a /tmp that everyone may write to, because outside of Kubernetes the
// broker creates its socket there.
func layerOf(file string, content []byte) ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, each := range []struct {
		header  tar.Header
		content []byte
	}{
		{tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, nil},
		{tar.Header{Name: file, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}, content},
	} {
		each.header.ModTime = time.Unix(0, 0)
		each.header.Format = tar.FormatUSTAR
		if err := archive.WriteHeader(&each.header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(each.content); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return buffer.Bytes(), err
}

// writeArchive writes an image archive. A reader never sees an incomplete one.
func writeArchive(path, reference string, image v1.Image) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".archive-*")
	if err != nil {
		return err
	}
	err = tarball.Write(tag, image, file)
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}

// push uploads an image with the credentials of the user's container engine.
func push(reference string, image v1.Image) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return err
	}
	return remote.Write(tag, image, remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

// removeOlder removes the archives of earlier builds from the folder, because each is as large as the programs.
func removeOlder(folder, tag string) error {
	for _, each := range programs {
		archives, err := filepath.Glob(filepath.Join(folder, each.name+"-*.tar"))
		if err != nil {
			return err
		}
		for _, archive := range archives {
			if strings.HasSuffix(archive, "-"+tag+".tar") {
				continue
			}
			if err := os.Remove(archive); err != nil {
				return err
			}
		}
	}
	return nil
}
