// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"crypto/tls"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// The names that distributions give to the library, newest first.
var libraryNames = []string{"libssl.so.3", "libssl.so.1.1"}

// The oldest version whose functions the package uses: 1.1.1. The next one is 3.0.
const (
	oldestVersion = 0x10101000
	version3      = 0x30000000
)

// library is a loaded libssl with its libcrypto. It is never unloaded, because OpenSSL has memory of
// each thread that has called it.
type library struct {
	path string
	functions
	handshakes handshakes
}

// functions are the addresses of the functions in C. The functions that OpenSSL 3 added are 0 with
// OpenSSL 1.1.1, and the functions that it removed are 0 with OpenSSL 3.
type functions struct {
	initSSL, version, versionNumber uintptr

	clearErrors, getError, errorReason uintptr

	tlsClientMethod, contextNew, contextFree, contextControl, contextSetOptions, contextSetVerify,
	contextGetStore, contextGetParam, contextDefaultPaths, contextSetCipherList, contextUseCertificate,
	contextUseKey, contextCheckKey, contextSecurityLevel, contextSetSecurityLevel,
	contextCiphers uintptr

	storeAddCertificate, storeAddCRL, paramSetFlags, paramSetIP, verifyErrorText uintptr

	certificateFromDER, certificateToDER, certificateFree, crlFromDER, crlFree, keyFromDER, keyFree,
	stackLength, stackValue uintptr

	sslNew, sslFree, sslControl, sslSetConnectState, sslSetBIO, sslSetHost, sslSetHostFlags, sslGetParam,
	sslSetALPN, sslGetALPN, sslSetSession, sslGetSession, sslSessionReused, sslDoHandshake, sslRead,
	sslWrite, sslHasPending, sslShutdown, sslGetError, sslVersion, sslVerifyResult, sslPeerChain,
	sslVerifiedChain, sslCipher, cipherID, cipherName uintptr

	sessionFree, sessionIsResumable uintptr

	bioNew, bioMemory, bioRead, bioWrite, bioPending uintptr

	providerAvailable, defaultIsFIPS, fipsMode, providerLoad, providerUnload, providerParameters uintptr

	// freeToSystem is a function of glibc.
	freeToSystem uintptr
}

func (f *functions) table() (required, optional map[string]*uintptr) {
	required = map[string]*uintptr{
		"OPENSSL_init_ssl": &f.initSSL, "OpenSSL_version": &f.version, "OpenSSL_version_num": &f.versionNumber,

		"ERR_clear_error": &f.clearErrors, "ERR_get_error": &f.getError, "ERR_reason_error_string": &f.errorReason,

		"TLS_client_method": &f.tlsClientMethod, "SSL_CTX_new": &f.contextNew, "SSL_CTX_free": &f.contextFree,
		"SSL_CTX_ctrl": &f.contextControl, "SSL_CTX_set_options": &f.contextSetOptions,
		"SSL_CTX_set_verify": &f.contextSetVerify, "SSL_CTX_get_cert_store": &f.contextGetStore,
		"SSL_CTX_get0_param": &f.contextGetParam, "SSL_CTX_set_default_verify_paths": &f.contextDefaultPaths,
		"SSL_CTX_set_cipher_list": &f.contextSetCipherList, "SSL_CTX_use_certificate": &f.contextUseCertificate,
		"SSL_CTX_use_PrivateKey": &f.contextUseKey, "SSL_CTX_check_private_key": &f.contextCheckKey,
		"SSL_CTX_get_security_level": &f.contextSecurityLevel, "SSL_CTX_set_security_level": &f.contextSetSecurityLevel,
		"SSL_CTX_get_ciphers": &f.contextCiphers,

		"X509_STORE_add_cert": &f.storeAddCertificate, "X509_STORE_add_crl": &f.storeAddCRL,
		"X509_VERIFY_PARAM_set_flags": &f.paramSetFlags, "X509_VERIFY_PARAM_set1_ip_asc": &f.paramSetIP,
		"X509_verify_cert_error_string": &f.verifyErrorText,

		"d2i_X509": &f.certificateFromDER, "i2d_X509": &f.certificateToDER, "X509_free": &f.certificateFree,
		"d2i_X509_CRL": &f.crlFromDER, "X509_CRL_free": &f.crlFree,
		"d2i_AutoPrivateKey": &f.keyFromDER, "EVP_PKEY_free": &f.keyFree,
		"OPENSSL_sk_num": &f.stackLength, "OPENSSL_sk_value": &f.stackValue,

		"SSL_new": &f.sslNew, "SSL_free": &f.sslFree, "SSL_ctrl": &f.sslControl,
		"SSL_set_connect_state": &f.sslSetConnectState, "SSL_set_bio": &f.sslSetBIO, "SSL_set1_host": &f.sslSetHost,
		"SSL_set_hostflags": &f.sslSetHostFlags, "SSL_get0_param": &f.sslGetParam,
		"SSL_set_alpn_protos": &f.sslSetALPN, "SSL_get0_alpn_selected": &f.sslGetALPN,
		"SSL_set_session": &f.sslSetSession, "SSL_get1_session": &f.sslGetSession,
		"SSL_session_reused": &f.sslSessionReused, "SSL_do_handshake": &f.sslDoHandshake, "SSL_read": &f.sslRead,
		"SSL_write": &f.sslWrite, "SSL_has_pending": &f.sslHasPending, "SSL_shutdown": &f.sslShutdown,
		"SSL_get_error": &f.sslGetError, "SSL_version": &f.sslVersion, "SSL_get_verify_result": &f.sslVerifyResult,
		"SSL_get_peer_cert_chain": &f.sslPeerChain, "SSL_get0_verified_chain": &f.sslVerifiedChain,
		"SSL_get_current_cipher": &f.sslCipher, "SSL_CIPHER_get_protocol_id": &f.cipherID, "SSL_CIPHER_get_name": &f.cipherName,
		"SSL_SESSION_free": &f.sessionFree, "SSL_SESSION_is_resumable": &f.sessionIsResumable,

		"BIO_new": &f.bioNew, "BIO_s_mem": &f.bioMemory, "BIO_read": &f.bioRead, "BIO_write": &f.bioWrite,
		"BIO_ctrl_pending": &f.bioPending,
	}
	optional = map[string]*uintptr{
		"OSSL_PROVIDER_available": &f.providerAvailable, "EVP_default_properties_is_fips_enabled": &f.defaultIsFIPS,
		"FIPS_mode": &f.fipsMode, "OSSL_PROVIDER_load": &f.providerLoad, "OSSL_PROVIDER_unload": &f.providerUnload,
		"OSSL_PROVIDER_get_params": &f.providerParameters,
		"malloc_trim":              &f.freeToSystem,
	}
	return required, optional
}

var libraries struct {
	sync.Mutex
	byPath map[string]*library
}

// loadLibrary returns the library with the path or the first of libraryNames that the system has. It does not remember a failure,
// so it finds a library that was installed later.
func loadLibrary(path string) (*library, error) {
	libraries.Lock()
	defer libraries.Unlock()
	if loaded, ok := libraries.byPath[path]; ok {
		return loaded, nil
	}
	names := libraryNames
	if path != "" {
		names = []string{path}
	}
	var failures []error
	for _, name := range names {
		handle, err := openLibrary(name)
		if errors.Is(err, ErrPlatform) {
			return nil, err
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		loaded, err := newLibrary(handle, name)
		if err != nil {
			return nil, err
		}
		if libraries.byPath == nil {
			libraries.byPath = map[string]*library{}
		}
		libraries.byPath[path] = loaded
		return loaded, nil
	}
	return nil, fmt.Errorf("openssl: found no library %s, expected OpenSSL 1.1.1 or 3.x to be installed: %w",
		strings.Join(names, " and no "), errors.Join(failures...))
}

func newLibrary(handle uintptr, name string) (*library, error) {
	l := &library{path: name}
	required, optional := l.table()
	for function, address := range required {
		found, err := findFunction(handle, function)
		if err != nil {
			return nil, fmt.Errorf("openssl: %s has no function %s, expected OpenSSL 1.1.1 or 3.x: %w", name, function, err)
		}
		*address = found
	}
	for function, address := range optional {
		if found, err := findFunction(handle, function); err == nil {
			*address = found
		}
	}
	if number := call(l.versionNumber); number < oldestVersion {
		return nil, fmt.Errorf("openssl: %s is %s, expected OpenSSL 1.1.1 or 3.x", name, l.versionText())
	}
	unlock := l.lockErrors()
	defer unlock()
	// Go programs end without calling the functions of atexit. In a C program with Go code, atexit must not free what goroutines
	// still use.
	const noAtExit = 0x00080000
	if call(l.initSSL, noAtExit, 0) != 1 {
		return nil, l.failure("initialize " + name)
	}
	l.handshakes.returnMemory = func() {
		if l.freeToSystem != 0 {
			call(l.freeToSystem, 0)
		}
	}
	return l, nil
}

// lockErrors keeps the goroutine on its thread and empties the thread's error queue. OpenSSL has an
// error queue for each thread, and a goroutine may change its thread between two calls.
func (l *library) lockErrors() (unlock func()) {
	runtime.LockOSThread()
	call(l.clearErrors)
	return runtime.UnlockOSThread
}

// failure returns an error with what is in the error queue of the thread, and empties it.
func (l *library) failure(operation string) *Error {
	failed := &Error{Operation: operation}
	for {
		code := call(l.getError)
		if code == 0 {
			return failed
		}
		alert := alertOf(code)
		if failed.alert == 0 {
			failed.alert = alert
		}
		reason := goString(call(l.errorReason, code))
		switch {
		case reason == "" && alert != 0:
			reason = fmt.Sprintf("alert %d of the peer", uint8(alert))
		case reason == "":
			reason = fmt.Sprintf("error %08X", uint32(code))
		}
		failed.Reasons = append(failed.Reasons, reason)
	}
}

// alertOf returns the alert of the peer that an error of OpenSSL is about, or 0. Reasons of
// libssl from SSL_AD_REASON_OFFSET on are alerts of TLS. The number of the library is above the reason,
// at bit 23 in OpenSSL 3, and at bit 24 before. The alert 0 is no failure.
func alertOf(code uintptr) tls.AlertError {
	const libSSL, firstAlert, lastAlert = 20, 1000, 1255
	reason := code & 0x7FFFFF
	if code>>23 != libSSL {
		if code>>24 != libSSL {
			return 0
		}
		reason = code & 0xFFF
	}
	if reason <= firstAlert || reason > lastAlert {
		return 0
	}
	return tls.AlertError(reason - firstAlert)
}

func (l *library) versionText() string { return goString(call(l.version, 0)) }

// goString returns the C string at an address in memory of C.
func goString(address uintptr) string {
	if address == 0 {
		return ""
	}
	text := pointer(address)
	length := 0
	for *(*byte)(unsafe.Add(text, length)) != 0 {
		length++
	}
	return string(unsafe.Slice((*byte)(text), length))
}

// pointer returns an address in memory of C as a pointer.
func pointer(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// cString returns the text with a zero byte at its end.
func cString(text string) []byte { return append([]byte(text), 0) }

// start returns where the bytes begin, for use in the arguments of call only.
func start(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
