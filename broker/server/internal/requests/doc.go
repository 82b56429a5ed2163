// SPDX-License-Identifier: Apache-2.0

// Package requests reads the requests of the wire contract, and refuses invalid ones.
//
// [Unmarshal] has its own code for the requests of most calls, and leaves all others to the
// protobuf library. Fields have limits. A refusal names the field and never quotes its
// value. The reply repeats the metadata of the request byte for byte, see [Retag].
package requests
