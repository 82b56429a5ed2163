// SPDX-License-Identifier: Apache-2.0

package unixsocket

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/ownedir"
)

// socketDirectory is what a directory of sockets, or of such directories, is for.
var socketDirectory = ownedir.Kind{Name: "socket directory", Content: "sockets"}

// own gives a directory that was opened to the group of the options where it belongs
// to the broker's own user, and closes it where that fails.
func (o *Options) own(dir *ownedir.Dir, err error) (*ownedir.Dir, error) {
	if err != nil || !dir.Own {
		return dir, err
	}
	err = o.grant(dir.Path, 0o700, 0o750,
		func(group int) error { return unix.Fchown(dir.FD(), -1, group) },
		func(mode uint32) error { return unix.Fchmod(dir.FD(), mode) })
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// grant gives a file of the broker to its group, or to nobody else.
func (o *Options) grant(path string, alone, shared uint32, chown func(group int) error, chmod func(mode uint32) error) error {
	mode := alone
	if o.Group >= 0 {
		mode = shared
		if err := chown(o.Group); errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("give %s to the group %d: the broker's user must be a member of it: %w", path, o.Group, err)
		} else if err != nil {
			return fmt.Errorf("give %s to the group %d: %w", path, o.Group, err)
		}
	}
	if err := chmod(mode); err != nil {
		return fmt.Errorf("set the mode of %s to %04o: %w", path, mode, err)
	}
	return nil
}
