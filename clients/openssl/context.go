// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"crypto/tls"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"
)

// Numbers of OpenSSL's headers, which are part of its ABI.
const (
	ctrlMode           = 33
	ctrlSessionCache   = 44
	ctrlServerName     = 55
	ctrlChainCert      = 89
	ctrlGroupsList     = 92
	ctrlMinVersion     = 123
	ctrlMaxVersion     = 124
	ctrlGetMinVersion  = 130
	ctrlGetMaxVersion  = 131
	modePartialWrite   = 0x01
	modeMovingBuffer   = 0x02
	modeAutoRetry      = 0x04
	modeReleaseBuffers = 0x10
	optNoCompression   = 0x00020000
	optNoRenegotiation = 0x40000000
	verifyPeer         = 1
	flagCRLCheck       = 0x4
	flagCRLCheckAll    = 0x8
	flagPartialChain   = 0x80000
	hostNeverSubject   = 0x20
	hostNoPartialWild  = 0x4
	resultWantRead     = 2
	resultZeroReturn   = 6
)

// leastSecurityLevel is the level that refuses SHA-1 in signatures with OpenSSL 1.1.1, and keys below 112 bits of security.
const leastSecurityLevel = 2

// live counts what was allocated in C and not yet freed; tests compare it.
var live struct{ contexts, connections, sessions atomic.Int64 }

// sslContext is an SSL_CTX: the configuration that connections share. It does not change after
// newContext, and OpenSSL counts its connections, so it may be freed before them.
type sslContext struct {
	lib     *library
	address uintptr
}

func newContext(lib *library, checked *settings) (*sslContext, error) {
	unlock := lib.lockErrors()
	defer unlock()
	address := call(lib.contextNew, call(lib.tlsClientMethod))
	if address == 0 {
		return nil, lib.failure("make a context")
	}
	live.contexts.Add(1)
	context := &sslContext{lib: lib, address: address}
	for _, configure := range []func(*settings) error{context.setProtocol, context.setTrust, context.setCertificate} {
		if err := configure(checked); err != nil {
			context.free()
			return nil, err
		}
	}
	return context, nil
}

func (c *sslContext) free() {
	call(c.lib.contextFree, c.address)
	live.contexts.Add(-1)
}

func (c *sslContext) setProtocol(checked *settings) error {
	call(c.lib.contextControl, c.address, ctrlMode, modePartialWrite|modeMovingBuffer|modeAutoRetry|modeReleaseBuffers, 0)
	call(c.lib.contextControl, c.address, ctrlSessionCache, 0, 0)
	call(c.lib.contextSetOptions, c.address, optNoCompression|optNoRenegotiation)
	// OpenSSL 3 refuses SHA-1 at its own level. OpenSSL 1.1.1 accepts certificates and handshakes that are signed with SHA-1, unless its
	// distribution or openssl.cnf has raised the level.
	if call(c.lib.versionNumber) < version3 && int32(call(c.lib.contextSecurityLevel, c.address)) < leastSecurityLevel {
		call(c.lib.contextSetSecurityLevel, c.address, leastSecurityLevel)
	}
	oldest, err := c.setVersions(checked)
	if err == nil && oldest == tls.VersionTLS12 {
		err = c.setSuites(checked)
	}
	if err != nil {
		return err
	}
	if checked.groups == "" {
		return nil
	}
	groups := cString(checked.groups)
	if call(c.lib.contextControl, c.address, ctrlGroupsList, 0, uintptr(start(groups))) != 1 {
		return c.lib.failure("set CurvePreferences")
	}
	return nil
}

// setVersions sets the versions that both the settings and openssl.cnf allow, and returns the oldest. A new context has those of
// openssl.cnf, or 0.
func (c *sslContext) setVersions(checked *settings) (oldest uint16, err error) {
	oldest, newest := checked.minVersion, checked.maxVersion
	oldest = max(oldest, uint16(call(c.lib.contextControl, c.address, ctrlGetMinVersion, 0, 0)))
	if limit := uint16(call(c.lib.contextControl, c.address, ctrlGetMaxVersion, 0, 0)); limit != 0 {
		newest = min(newest, limit)
	}
	if oldest > newest {
		return 0, errors.New("openssl: MinVersion and MaxVersion: openssl.cnf allows no version between them")
	}
	if call(c.lib.contextControl, c.address, ctrlMinVersion, uintptr(oldest), 0) != 1 ||
		call(c.lib.contextControl, c.address, ctrlMaxVersion, uintptr(newest), 0) != 1 {
		return 0, c.lib.failure("set MinVersion and MaxVersion")
	}
	return oldest, nil
}

// setSuites sets the suites of TLS 1.2 that both the settings and openssl.cnf allow, in the order of the settings.
func (c *sslContext) setSuites(checked *settings) error {
	allowed := c.suites()
	set := func(list string) error {
		text := cString(list)
		if int32(call(c.lib.contextSetCipherList, c.address, uintptr(start(text)))) != 1 {
			return c.lib.failure("set CipherSuites")
		}
		return nil
	}
	if err := set(checked.cipherList); err != nil {
		return err
	}
	wanted := c.suites()
	both := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return !slices.Contains(allowed, name) })
	switch len(both) {
	case len(wanted):
		return nil
	case 0:
		return errors.New("openssl: CipherSuites: openssl.cnf allows none of them")
	default:
		return set(strings.Join(both, ":"))
	}
}

// suites returns OpenSSL's names of the suites of TLS 1.2 that the context has, the best first.
func (c *sslContext) suites() []string {
	var names []string
	stack := call(c.lib.contextCiphers, c.address)
	for i := range int(int32(call(c.lib.stackLength, stack))) {
		// The names of suites of TLS 1.3 begin with TLS_.
		if name := goString(call(c.lib.cipherName, call(c.lib.stackValue, stack, uintptr(i)))); !strings.HasPrefix(name, "TLS_") {
			names = append(names, name)
		}
	}
	return names
}

func (c *sslContext) setTrust(checked *settings) error {
	call(c.lib.contextSetVerify, c.address, verifyPeer, 0)
	var flags uintptr = flagPartialChain
	if len(checked.crls) > 0 {
		flags |= flagCRLCheck | flagCRLCheckAll
	}
	if int32(call(c.lib.paramSetFlags, call(c.lib.contextGetParam, c.address), flags)) != 1 {
		return c.lib.failure("set how certificates are verified")
	}
	if len(checked.roots) == 0 && int32(call(c.lib.contextDefaultPaths, c.address)) != 1 {
		return c.lib.failure("read the authorities of the system")
	}
	store := call(c.lib.contextGetStore, c.address)
	for _, der := range checked.roots {
		if err := c.withObject("RootCAs", der, c.lib.certificateFromDER, c.lib.certificateFree, func(certificate uintptr) bool {
			return int32(call(c.lib.storeAddCertificate, store, certificate)) == 1
		}); err != nil {
			return err
		}
	}
	for _, der := range checked.crls {
		if err := c.withObject("CRLs", der, c.lib.crlFromDER, c.lib.crlFree, func(list uintptr) bool {
			return int32(call(c.lib.storeAddCRL, store, list)) == 1
		}); err != nil {
			return err
		}
	}
	return nil
}

func (c *sslContext) setCertificate(checked *settings) error {
	for i, der := range checked.certificates {
		if err := c.withObject("Certificate", der, c.lib.certificateFromDER, c.lib.certificateFree, func(certificate uintptr) bool {
			if i == 0 {
				return int32(call(c.lib.contextUseCertificate, c.address, certificate)) == 1
			}
			const count = 1
			return call(c.lib.contextControl, c.address, ctrlChainCert, count, certificate) == 1
		}); err != nil {
			return err
		}
	}
	if len(checked.key) == 0 {
		return nil
	}
	return c.withObject("PrivateKey", checked.key, c.lib.keyFromDER, c.lib.keyFree, func(key uintptr) bool {
		return int32(call(c.lib.contextUseKey, c.address, key)) == 1 && int32(call(c.lib.contextCheckKey, c.address)) == 1
	})
}

// withObject decodes an object, passes it to use, and frees it. OpenSSL counts references, so what
// use stored stays. use reports whether it succeeded.
func (c *sslContext) withObject(field string, der []byte, decode, free uintptr, use func(object uintptr) bool) error {
	content := new(unsafe.Pointer)
	*content = start(der)
	object := call(decode, 0, uintptr(unsafe.Pointer(content)), uintptr(len(der)))
	runtime.KeepAlive(der)
	if object == 0 {
		return c.lib.failure("read " + field)
	}
	defer call(free, object)
	if !use(object) {
		return c.lib.failure("use " + field)
	}
	return nil
}
