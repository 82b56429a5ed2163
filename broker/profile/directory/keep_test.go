// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
)

// watchWith starts a source with a state directory, and returns why that fails.
func watchWith(t *testing.T, state string) error {
	t.Helper()
	source, err := directory.Watch(t.Context(), t.TempDir(), directory.WithTrust(trusting(0), state))
	if err == nil {
		t.Cleanup(source.Wait)
	}
	return err
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Mode().Perm()
}

func TestNobodyElseLooksIntoTheStateDirectory(t *testing.T) {
	parent := t.TempDir()
	must(t, os.Symlink(parent, filepath.Join(parent, "link"))) // links above it are the system's own
	open := filepath.Join(parent, "open")
	must(t, os.Mkdir(open, 0o755))
	for sentence, path := range map[string]string{
		"one that is missing":   filepath.Join(parent, "a", "b"),
		"one that is there":     open,
		"one below a link":      filepath.Join(parent, "link", "c"),
		"one with a slash more": filepath.Join(parent, "d") + "/",
	} {
		t.Run(sentence, func(t *testing.T) {
			must(t, watchWith(t, path))
			if got := mode(t, path); got != 0o700 {
				t.Errorf("the mode is %04o, want 0700", got)
			}
		})
	}
}

func TestAStateDirectoryBehindALinkIsRefusedAndLeftAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(path+".real", 0o755))
	must(t, os.Symlink(path+".real", path))
	want := "the state directory " + path + " is a symbolic link, expected a directory: remove the link or choose another state directory"
	if err := watchWith(t, path); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if got := mode(t, path); got != 0o755 {
		t.Errorf("behind the link the mode is %04o, want 0755 as before", got)
	}
}

// Only root can change the owner of a directory, so other users cannot run this test.
func TestAStateDirectoryOfAnotherUserIsRefusedAndLeftAsItIs(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	path := t.TempDir()
	must(t, os.Chmod(path, 0o755))
	must(t, os.Chown(path, 1001, -1))
	want := "the state directory " + path + " belongs to the user 1001, who could replace the sets in it, expected the broker's own user 0 or root: remove it, change its owner, or choose another state directory"
	if err := watchWith(t, path); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if got := mode(t, path); got != 0o755 {
		t.Errorf("the mode is %04o, want 0755 as before", got)
	}
}
