// SPDX-License-Identifier: Apache-2.0

// Package keyaccess is a key access service as OpenTDF's clients use it: it releases the data
// keys of files to callers who may have them.
//
// A client sends wrapped data keys, each with the policy that is bound to it. The service
// unwraps a data key, checks that the policy is bound to it, asks an [policy.Authorizer], and wraps
// the data key to the public key of the client.
//
// [Service.Handler] serves the protocol by Connect and gRPC, and for older clients as plain JSON.
//
// Every failure that depends on a data key or a private key has one text, and takes the same path
// to it: clients cannot tell a wrong policy from a wrong binding or a wrong wrapped key.
package keyaccess
