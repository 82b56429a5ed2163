// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"crypto/x509"
	"runtime"
	"sync"
	"weak"
)

// inUse has the certificates of peers that are in use, so that connections to one server share them.
var inUse certificates

// certificates are parsed certificates by their DER. They are kept for as long as somebody uses them.
type certificates struct{ byDER sync.Map } // of string to weak.Pointer[x509.Certificate]

func (c *certificates) parse(der []byte) (*x509.Certificate, error) {
	if found, ok := c.byDER.Load(string(der)); ok {
		if certificate := found.(weak.Pointer[x509.Certificate]).Value(); certificate != nil {
			return certificate, nil
		}
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	// If two goroutines parse the same certificate at once, the last one stays in the map.
	pointer := weak.Make(certificate)
	c.byDER.Store(string(der), pointer)
	runtime.AddCleanup(certificate, func(der string) { c.byDER.CompareAndDelete(der, pointer) }, string(der))
	return certificate, nil
}
