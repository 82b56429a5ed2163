// SPDX-License-Identifier: Apache-2.0

//go:build unix

package rewrap

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner and the group of the file that it will replace. Otherwise root
// would take wrapped keys away from the applications that read them.
func keepOwner(file *os.File, old fs.FileInfo) error {
	now, err := file.Stat()
	if err != nil {
		return err
	}
	is, known := now.Sys().(*syscall.Stat_t)
	was, also := old.Sys().(*syscall.Stat_t)
	if !known || !also || is.Uid == was.Uid && is.Gid == was.Gid {
		return nil
	}
	if err := file.Chown(int(was.Uid), int(was.Gid)); err != nil {
		return fmt.Errorf("the new file cannot have the owner %d and the group %d of the old one: %w", was.Uid, was.Gid, err)
	}
	return nil
}
