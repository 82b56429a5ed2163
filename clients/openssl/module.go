// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"runtime"
	"unsafe"
)

// Module describes the loaded OpenSSL.
type Module struct {
	// Library is the path or the name that was loaded, such as "libssl.so.3".
	Library string
	// Version is OpenSSL's own text, such as "OpenSSL 3.0.19 27 Jan 2026".
	Version string
	// FIPSProvider reports whether the FIPS provider is active. Always false with OpenSSL 1.1.1, which has
	// no providers.
	FIPSProvider bool
	// FIPSProviderName and FIPSProviderVersion are the name and the version of the FIPS provider, such as "OpenSSL FIPS Provider"
	// and "3.1.2". They differ from the name and the version of the library. Both are empty if it is not active.
	FIPSProviderName, FIPSProviderVersion string
	// FIPS reports whether OpenSSL uses FIPS algorithms only: with OpenSSL 3, FIPSProvider and the
	// default property "fips=yes"; with OpenSSL 1.1.1 of some distributions, their FIPS mode.
	FIPS bool
}

// LoadedModule loads the library that a [Config] with the same Library uses, and describes it.
func LoadedModule(libraryPath string) (Module, error) {
	lib, err := loadLibrary(libraryPath)
	if err != nil {
		return Module{}, err
	}
	return lib.module(), nil
}

func (l *library) module() Module {
	unlock := l.lockErrors()
	defer unlock()
	module := Module{Library: l.path, Version: l.versionText()}
	if l.providerAvailable != 0 && l.defaultIsFIPS != 0 {
		name := cString("fips")
		module.FIPSProvider = int32(call(l.providerAvailable, 0, uintptr(start(name)))) == 1
		module.FIPS = module.FIPSProvider && int32(call(l.defaultIsFIPS, 0)) == 1
		if module.FIPSProvider {
			module.FIPSProviderName, module.FIPSProviderVersion = l.describe(name)
		}
	} else if l.fipsMode != 0 {
		module.FIPS = int32(call(l.fipsMode)) == 1
	}
	call(l.clearErrors)
	return module
}

// parameter is an OSSL_PARAM.
type parameter struct {
	key  unsafe.Pointer
	kind uint32
	data unsafe.Pointer
	_    [2]uintptr // sizes, which texts do not need
}

// parameterText is the kind of a parameter that OpenSSL sets to the address of a text.
const parameterText = 6

// describe returns the name and the version of a provider that is active.
func (l *library) describe(provider []byte) (name, version string) {
	if l.providerLoad == 0 || l.providerParameters == 0 || l.providerUnload == 0 {
		return "", ""
	}
	// Loading an active provider only adds one to its count of users, and unloading it subtracts one.
	found := call(l.providerLoad, 0, uintptr(start(provider)))
	if found == 0 {
		return "", ""
	}
	defer call(l.providerUnload, found)
	keys := [][]byte{cString("name"), cString("version")}
	texts := new([2]uintptr)
	parameters := new([3]parameter) // the last parameter marks the end
	// The parameters contain addresses that OpenSSL follows.
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinner.Pin(texts)
	for i, key := range keys {
		pinner.Pin(start(key))
		parameters[i] = parameter{key: start(key), kind: parameterText, data: unsafe.Pointer(&texts[i])}
	}
	if int32(call(l.providerParameters, found, uintptr(unsafe.Pointer(parameters)))) != 1 {
		return "", ""
	}
	return goString(texts[0]), goString(texts[1])
}
