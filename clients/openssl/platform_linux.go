// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package openssl

import "github.com/ebitengine/purego"

func openLibrary(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func findFunction(library uintptr, name string) (uintptr, error) {
	return purego.Dlsym(library, name)
}

// call calls a function in C. The pragma keeps the memory that pointers in the arguments point to in place until call returns, if
// the conversion to uintptr is in the argument itself (rule 4 of unsafe.Pointer).
//
//go:uintptrescapes
func call(function uintptr, arguments ...uintptr) uintptr {
	result, _, _ := purego.SyscallN(function, arguments...)
	return result
}
