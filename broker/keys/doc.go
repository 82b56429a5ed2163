// SPDX-License-Identifier: Apache-2.0

// Package keys finds and parses keys. An application names a key by its id, and the broker
// uses the key. The key itself never passes through the socket.
//
// A [Provider] finds keys by id. It returns a [Key], which has operations and not bytes, so
// that the provider may be a key manager that never gives out its keys.
//
// [Directory] is the provider of a directory of files, typically mounted from Kubernetes
// Secrets. The id of a key is the name of its files:
//
//	<id>.key              PEM private key: PKCS #8, PKCS #1 or SEC 1, not encrypted
//	<id>.crt              PEM certificates: of the key first, each followed by its issuer
//	<id>.pub              PEM public key (SubjectPublicKeyInfo), to verify only
//	<id>.bin              AES key: 16, 24 or 32 bytes without encoding
//	<id>/tls.key, tls.crt a Secret of type kubernetes.io/tls, mounted as a subdirectory
//	<any>/<id>.key, …     another Secret, mounted as a subdirectory
//
// A key has either a .bin file alone, or at least one of .key, .crt and .pub, which have to
// belong to the same public key. Without a .key file, the key only verifies.
//
// The directory is followed as the directory of profiles is. If the files of a key become
// invalid, only this key is affected: the broker uses its last valid version, if there was
// one. If the files of a key are removed, the key is removed.
//
// No error, log line or other text of this package has any part of a key, except for its id,
// its algorithm and its size.
package keys
