// SPDX-License-Identifier: Apache-2.0

// Package request reads the requests of OpenTDF's clients for data keys.
//
// A request is a JWS whose claim requestBody has an UnsignedRewrapRequest as JSON. The client
// signs it with the key of its DPoP proofs. A client whose token is bound to no key also signs
// it, but with a key that nobody vouches for: anybody who has such a token can sign as well. So the
// signature of such a request says nothing, and is not checked. The configuration of issuers
// decides whether such tokens are accepted.
package request
