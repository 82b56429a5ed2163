// SPDX-License-Identifier: Apache-2.0

// Package caller establishes who calls a key access service: it checks the access token of a request, and
// the proof that the caller has the key which the token is bound to (DPoP, RFC 9449).
//
// A [Verifier] accepts tokens of the issuers that are configured, as JWS with a signature by a public key
// of the issuer. It finds the keys by OpenID Connect Discovery 1.0, keeps them, and gets them again while the
// old ones are in use. A token that is bound to a key is accepted with a proof by that key only. A token that
// is bound to nothing is accepted only where the configuration says so.
//
// A token comes with many requests. Its signature is checked once for each key, and the key of a caller's proofs is parsed once; all
// else is checked each time.
//
// What the package cannot check, it refuses: unknown algorithms, critical headers, tokens that are bound to a
// certificate, and proofs that it cannot remember.
//
// Errors and log lines have no part of a token or a proof.
package caller
