// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrPlatform is the error of [New] where the package cannot load OpenSSL.
var ErrPlatform = errors.New("openssl: this platform is not supported, expected Linux on amd64 or arm64")

// ErrTruncated is the error of [Conn.Read] if the peer closed the connection without close_notify
// (RFC 8446, section 6.1). Somebody else may have cut the connection, so what was read may be
// incomplete. It is an [io.ErrUnexpectedEOF].
var ErrTruncated = fmt.Errorf("openssl: the connection was closed without close_notify, data may be missing: %w", io.ErrUnexpectedEOF)

var (
	errShutdown = errors.New("openssl: write after CloseWrite")
	errBarren   = fmt.Errorf("the peer has sent more than %d bytes without data", barrenLimit)
	errAnswers  = errors.New("openssl: the peer asks for answers and does not read them")
)

// Error is a failure that OpenSSL reported.
type Error struct {
	// Operation is what was done, such as "handshake with example.com".
	Operation string
	// Reasons are OpenSSL's reasons, such as "certificate verify failed", the cause first. It is
	// empty if OpenSSL gave none.
	Reasons []string
	// Certificate is the reason why the certificate of the peer was refused, or nil.
	Certificate *CertificateError

	alert tls.AlertError // of the peer, or 0
}

// Error returns the operation with its reasons.
func (e *Error) Error() string {
	text := "openssl: " + e.Operation + ": "
	if len(e.Reasons) == 0 {
		text += "failed without a reason"
	}
	text += strings.Join(e.Reasons, ": ")
	if e.Certificate != nil {
		text += ": " + e.Certificate.Error()
	}
	return text
}

// Unwrap returns the field Certificate and the alert of the peer, if there are any, so that programs can
// look for the types that crypto/tls returns: [tls.CertificateVerificationError] and [tls.AlertError].
func (e *Error) Unwrap() []error {
	var causes []error
	if e.Certificate != nil {
		causes = append(causes, e.Certificate, &tls.CertificateVerificationError{Err: e.Certificate})
	}
	if e.alert != 0 {
		causes = append(causes, e.alert)
	}
	return causes
}

// CertificateError is the reason why OpenSSL refused a certificate of the peer.
type CertificateError struct {
	// Code is one of X509_V_ERR_…, such as 10 for an expired certificate.
	Code int
	// Reason is OpenSSL's sentence for the code.
	Reason string
}

// Error returns the reason.
func (e *CertificateError) Error() string { return e.Reason }
