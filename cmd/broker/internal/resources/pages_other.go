// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package resources

// DropStartPages does nothing: the system decides which pages it keeps.
func DropStartPages() error { return nil }
