// SPDX-License-Identifier: Apache-2.0

// Package rewrap wraps many wrapped keys again, in files, directories and lines, with several calls at one time.
package rewrap
