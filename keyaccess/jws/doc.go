// SPDX-License-Identifier: Apache-2.0

// Package jws takes JSON Web Signatures (RFC 7515) apart, each part once, and checks them with keys that the service knows.
//
// It is narrower than the RFC: it reads the compact form only, and no key, certificate or address of a header is followed. A library
// would parse the key in a header anew for each look at the header, which takes as long as the half of a check of a signature.
package jws
