// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package audit

import "os"

// lock does nothing: brokers run only where files can be locked.
func lock(string) (*os.File, error) { return nil, nil } //nolint:nilnil // there is no lock
