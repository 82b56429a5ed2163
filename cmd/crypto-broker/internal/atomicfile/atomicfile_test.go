// SPDX-License-Identifier: Apache-2.0

package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/cmd/crypto-broker/internal/atomicfile"
)

func write(to *os.File) error {
	_, err := io.WriteString(to, "new")
	return err
}

func TestAFileGetsItsContentAtOnceOrNotAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "output")
	broken := errors.New("broken")
	for _, test := range []struct {
		write func(*os.File) error
		err   error
		want  string
	}{
		{write, nil, "new"},
		{func(to *os.File) error { _, _ = io.WriteString(to, "a part"); return broken }, broken, "new"},
	} {
		if err := atomicfile.Write(path, 0o600, test.write); !errors.Is(err, test.err) {
			t.Errorf("found the error %v, expected %v", err, test.err)
		}
		if found, err := os.ReadFile(path); err != nil || string(found) != test.want {
			t.Errorf("found %q and the error %v, expected %q", found, err, test.want)
		}
		if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
			t.Errorf("found the files %v and the error %v, expected only the output", files, err)
		}
	}
}

func TestWhatIsNoRegularFileIsNotReplaced(t *testing.T) {
	folder := t.TempDir()
	target, link := filepath.Join(folder, "target"), filepath.Join(folder, "link")
	inner, pipe := filepath.Join(folder, "inner"), filepath.Join(folder, "pipe")
	if err := errors.Join(os.WriteFile(target, []byte("old"), 0o600), os.Symlink(target, link), os.Mkdir(inner, 0o700), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		link:  "found a symbolic link at " + link + ", expected a regular file or none",
		inner: "found a directory at " + inner + ", expected a regular file or none",
		pipe:  "found a named pipe at " + pipe + ", expected a regular file or none",
	} {
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		err = atomicfile.Write(path, 0o600, func(*os.File) error {
			t.Errorf("%s: the content was made for nothing", path)
			return nil
		})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: found the error %v, expected %q", path, err, want)
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s is another file than before, or gone: %v", path, err)
		}
	}
	if found, err := os.ReadFile(target); err != nil || string(found) != "old" {
		t.Errorf("found %q and the error %v behind the link, expected the old content", found, err)
	}
}
