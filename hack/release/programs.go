// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// program is a program that a release has for some platforms. The kubectl plugin is not one of these programs: see krew.go.
type program struct {
	name      string
	platforms []platform
}

// platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

var (
	linux = []platform{{"linux", "amd64"}, {"linux", "arm64"}}
	// everyday are the usual platforms of workstations. A release has the command line for them, but no broker: the broker needs
	// the identity of the callers of a Unix socket, and the memory limit of a control group.
	everyday = append(slices.Clone(linux), platform{"darwin", "amd64"}, platform{"darwin", "arm64"})
)

var programs = []program{{"broker", linux}, {"operator", linux}, {"gateway", linux}, {"crypto-broker", everyday}}

// programs builds an archive with each program for each of its platforms, and its bill of materials beside it.
func (r *release) programs(ctx context.Context) (err error) {
	folder, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	for _, program := range programs {
		for _, p := range program.platforms {
			name := fmt.Sprintf("%s-%s-%s-%s", program.name, r.version, p.os, p.arch)
			progress("%s", name)
			binary := filepath.Join(folder, name)
			if err := r.build(ctx, program.name, p, "v1.0.0", binary); err != nil {
				return err
			}
			archive, err := r.pack(program.name, binary)
			if err != nil {
				return err
			}
			bill, err := billOf(name, binary, r.version, r.at)
			if err != nil {
				return err
			}
			for suffix, content := range map[string][]byte{".tar.gz": archive, ".cdx.json": bill} {
				if err := os.WriteFile(filepath.Join(r.out, name+suffix), content, 0o644); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// build compiles a program with the flags of images, see hack/image. fips is the version of the Go Cryptographic Module, or off.
func (r *release) build(ctx context.Context, name string, p platform, fips, to string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace",
		"-ldflags", "-s -w -X main.version="+r.version, "-o", to, "./cmd/"+name)
	command.Dir = r.root
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOFLAGS=", "GOWORK=off", "GOFIPS140="+fips)
	_, err := printed(command)
	return err
}

// pack packs a program and the license.
func (r *release) pack(name, binary string) ([]byte, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	return tarGz([]file{{name, 0o755, content}, {"LICENSE", 0o644, license}})
}

// file is a file of an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

// tarGz packs files, in the order of their names and without times and owners, so that the same files give the same
// bytes.
func tarGz(files []file) ([]byte, error) {
	files = slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.name, b.name) })
	var content bytes.Buffer
	compressed := gzip.NewWriter(&content)
	archive := tar.NewWriter(compressed)
	for _, each := range files {
		header := tar.Header{Name: each.name, Mode: each.mode, Size: int64(len(each.content)), ModTime: time.Unix(0, 0)}
		if err := archive.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(each.content); err != nil {
			return nil, err
		}
	}
	err := errors.Join(archive.Close(), compressed.Close())
	return content.Bytes(), err
}
