// SPDX-License-Identifier: Apache-2.0

// Package gateway is the provider of the keys that a key gateway uses for this broker. The
// broker gets what is public about a key, and remembers it for a minute. Everything that needs a
// private or an AES key happens in the gateway.
//
// The package also has what both ends of the protocol have in common: the sizes of requests,
// the codes of errors, and the options of signatures.
package gateway
