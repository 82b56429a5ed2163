// SPDX-License-Identifier: Apache-2.0

// Package pkcs11 is the provider of keys in devices that have a library for PKCS #11, such as
// hardware security modules. The keys never leave their device.
//
// The library is code of somebody else in the process of the broker. Only programs that are
// built with the tag pkcs11 have the provider, because they need cgo. Others refuse it.
//
//	id of a key    CKA_LABEL of its objects
//	version        CKA_ID, in hexadecimal digits; the newest is the largest number
package pkcs11
