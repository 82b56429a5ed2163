// SPDX-License-Identifier: Apache-2.0

//go:build !(linux && (amd64 || arm64))

package openssl

func openLibrary(string) (uintptr, error) { return 0, ErrPlatform }

func findFunction(uintptr, string) (uintptr, error) { return 0, ErrPlatform }

// call is never reached, because no library can be opened.
func call(uintptr, ...uintptr) uintptr { panic(ErrPlatform) }
