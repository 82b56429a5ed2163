// SPDX-License-Identifier: Apache-2.0

package openssl

// Module is what OpenSSL says about itself.
type Module struct {
	// Library is the path or the name that was loaded, such as "libssl.so.3".
	Library string
	// Version is OpenSSL's own text, such as "OpenSSL 3.0.19 27 Jan 2026".
	Version string
	// FIPSProvider reports whether the FIPS provider is active. Always false with OpenSSL 1.1.1, which has
	// no providers.
	FIPSProvider bool
	// FIPS reports whether OpenSSL uses FIPS algorithms only: with OpenSSL 3, FIPSProvider and the
	// default property "fips=yes"; with OpenSSL 1.1.1 of some distributions, their FIPS mode.
	FIPS bool
}

// LoadedModule returns what the library says that a [Config] with the same Library uses.
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
	} else if l.fipsMode != 0 {
		module.FIPS = int32(call(l.fipsMode)) == 1
	}
	call(l.clearErrors)
	return module
}
