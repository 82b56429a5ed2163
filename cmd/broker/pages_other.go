// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// dropStartPages leaves it to the system which pages of the program it keeps.
func dropStartPages() error { return nil }
