// SPDX-License-Identifier: Apache-2.0

// Package openssl is a TLS client that uses the OpenSSL of the system instead of crypto/tls. It is
// for programs whose TLS has to come from OpenSSL, for example from its FIPS provider. It needs no
// cgo and no headers: it loads the shared library when the first [Client] is made.
//
// [New] returns a [Client], which all goroutines of a program share. [Client.Transport] and
// [Client.HTTP2Transport] are for [net/http.Client], [Client.DialTLSContext] is for an
// [net/http.Transport] of your own, and package opensslgrpc has credentials for gRPC.
//
// # What works where
//
// Linux with glibc on amd64 and arm64, OpenSSL 1.1.1 and 3.x. On other platforms the package
// compiles, and [New] returns [ErrPlatform]. A program that imports it is linked dynamically, with
// CGO_ENABLED=0 too. There is no TLS server.
//
// # What OpenSSL does, and what Go does
//
// OpenSSL does the handshake, checks certificates and host names, and encrypts. It never touches a
// socket: Go reads and writes the ciphertext. So deadlines, contexts and [Conn.Close] work as with
// other connections, and no thread waits in C. The package calls no Go function from C.
//
// # Differences from crypto/tls
//
//   - A connection that ends without close_notify is an error, [ErrTruncated]. crypto/tls returns
//     [io.EOF] at the end of a record.
//   - TLS 1.2 has only cipher suites with AES-GCM and ChaCha20-Poly1305, unless
//     [Config.CipherSuites] names others.
//   - OpenSSL's security level and its configuration file (openssl.cnf) hold. They may refuse what
//     crypto/tls accepts, such as RSA keys of 1024 bits. A [Config] does not allow versions and
//     suites of TLS 1.2 again that openssl.cnf forbids.
//   - A response of [net/http] has no TLS state, because net/http knows only the state of crypto/tls.
//   - Renegotiation is always refused, and certificates are always verified.
package openssl
