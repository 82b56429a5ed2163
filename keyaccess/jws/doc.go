// SPDX-License-Identifier: Apache-2.0

// Package jws takes JSON Web Signatures (RFC 7515) apart, each part once, and checks them with keys that the service knows.
//
// It is narrower than the RFC: it reads the compact form only, and uses no key, certificate or address of a header. A library would parse
// the key in a header again for each look at the header, which takes more than half as long as the check of a signature.
package jws
