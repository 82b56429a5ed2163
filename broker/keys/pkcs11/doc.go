// SPDX-License-Identifier: Apache-2.0

// Package pkcs11 is the provider of keys in devices that have a library for PKCS #11, such as
// hardware security modules. The keys never leave their device.
//
// The library is third-party code in the process of the broker. The provider needs cgo, so only
// programs that are built with the tag pkcs11 have it. Others refuse it.
//
//	id of a key    CKA_LABEL of its objects
//	version        CKA_ID, in hexadecimal digits; the newest is the largest number
package pkcs11
