// SPDX-License-Identifier: Apache-2.0

// Package keys gives access to keys by reference: an application names a key by
// its id, the broker uses it, and the key itself never crosses the socket.
//
// A Provider finds keys by id. What it returns is a Key, which says what can be
// done with it rather than what it is made of, so that a key manager whose keys
// never leave it fits as well.
//
// Directory is the provider of a directory of files, typically mounted from
// Kubernetes Secrets. The id of a key is the name of its files:
//
//	<id>.key              PEM private key: PKCS #8, PKCS #1 or SEC 1, not encrypted
//	<id>.crt              PEM certificates: that of the key first, each followed by its issuer
//	<id>.pub              PEM public key (SubjectPublicKeyInfo), to verify only
//	<id>.bin              AES key: 16, 24 or 32 bytes as they are
//	<id>/tls.key, tls.crt a Secret of type kubernetes.io/tls, mounted as a subdirectory
//	<any>/<id>.key, …     another Secret, mounted as a subdirectory
//
// A key is a .bin file alone, or at least one of .key, .crt and .pub, which then
// belong to the same public key. Without a .key it only verifies.
//
// The directory is followed like that of the profiles. A key whose files are
// bad takes only itself out of service, and where an earlier version of it was
// good, that goes on being used. A key whose files are gone is gone.
//
// No error, log line or other text of this package contains anything of a key
// but its id, its algorithm and its size.
package keys
