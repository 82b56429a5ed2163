// SPDX-License-Identifier: Apache-2.0

package regularfile_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/broker/regularfile"
)

const limit = 100

func TestAFileIsReadUpToOneByteMoreThanTheLimit(t *testing.T) {
	for sentence, test := range map[string]struct{ size, want int }{
		"an empty one":        {0, 0},
		"a small one":         {10, 10},
		"one at the limit":    {limit, limit},
		"one above it":        {limit + 1, limit + 1},
		"one far above it":    {1000 * limit, limit + 1},
		"one below the limit": {limit - 1, limit - 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(name, []byte(strings.Repeat("x", test.size)), 0o600); err != nil {
				t.Fatal(err)
			}
			data, info, err := regularfile.Read(name, limit)
			if err != nil || len(data) != test.want || info.Size() != int64(test.size) {
				t.Errorf("read %d bytes, %v", len(data), err)
			}
		})
	}
}

func TestALinkIsFollowedForAKubeletReachesItsFilesByThem(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600), os.Symlink("file", link)); err != nil {
		t.Fatal(err)
	}
	if data, _, err := regularfile.Read(link, limit); err != nil || string(data) != "text" {
		t.Errorf("read %q, %v", data, err)
	}
}

// A pipe that is opened to read waits for somebody who writes to it; here nobody
// ever does.
func TestWhatIsNoRegularFileIsRefusedWithoutWaiting(t *testing.T) {
	for sentence, create := range map[string]func(name string) error{
		"a pipe": func(name string) error { return unix.Mkfifo(name, 0o600) },
		"a link to a pipe": func(name string) error {
			return errors.Join(unix.Mkfifo(name+".pipe", 0o600), os.Symlink(name+".pipe", name))
		},
		"a directory": func(name string) error { return os.Mkdir(name, 0o700) },
		"a device":    func(name string) error { return os.Symlink("/dev/zero", name) },
		"a socket": func(name string) error {
			listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: name})
			if err == nil {
				t.Cleanup(func() { _ = listener.Close() })
			}
			return err
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "regular") // the directory of the test may be too long for a socket
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			name := filepath.Join(dir, "file")
			if err := create(name); err != nil {
				t.Fatal(err)
			}
			if _, _, err := regularfile.Read(name, limit); !errors.Is(err, regularfile.ErrNotRegular) || err.Error() != "read "+name+": is not a regular file" {
				t.Errorf("got %v", err)
			}
		})
	}
}
