// SPDX-License-Identifier: Apache-2.0

package unixsocket

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/crypto-broker/crypto-broker-operator/broker/internal/owneddir"
)

// socketDirectory is the name of a directory with sockets, or with directories of sockets, in
// errors.
var socketDirectory = owneddir.Kind{Name: "socket directory", Content: "sockets"}

// own gives an opened directory to the group of the options, if the directory belongs to
// the broker's own user. If it fails, it closes the directory. err is the error of opening
// the directory, which own returns.
func (o *Options) own(dir *owneddir.Dir, err error) (*owneddir.Dir, error) {
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

// grant gives a file to the group of the options and sets the mode shared. Without a group
// it sets the mode alone.
func (o *Options) grant(path string, alone, shared uint32, chown func(group int) error, chmod func(mode uint32) error) error {
	mode := alone
	if o.Group >= 0 {
		mode = shared
		if err := chown(o.Group); errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("give %s to the group %d: the broker's user must be a member of the group: %w", path, o.Group, err)
		} else if err != nil {
			return fmt.Errorf("give %s to the group %d: %w", path, o.Group, err)
		}
	}
	if err := chmod(mode); err != nil {
		return fmt.Errorf("set the mode of %s to %04o: %w", path, mode, err)
	}
	return nil
}
