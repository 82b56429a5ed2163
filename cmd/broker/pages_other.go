// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// dropStartPages does nothing: the system decides which pages it keeps.
func dropStartPages() error { return nil }
