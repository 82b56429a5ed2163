// SPDX-License-Identifier: Apache-2.0

// Package profiles has the command profiles, which checks profile files and shows how strong profiles are.
package profiles
