// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package owneddir

import (
	"errors"
	"fmt"
)

const workingDirectory = -1

// Open refuses every directory, because directories do not have Unix owners on this system.
func (k Kind) Open(_ int, _, path string) (*Dir, error) {
	return nil, fmt.Errorf("open the %s %s: %w", k.Name, path, errors.ErrUnsupported)
}
