// SPDX-License-Identifier: Apache-2.0

// Package requests reads the requests of the wire contract, and says what is wrong with one.
//
// [Unmarshal] reads the requests that most calls have by code of its own, and leaves all
// others to the library of protobuf. Fields have limits, and a refusal names the field and
// never quotes its value. The metadata of a request goes into its reply as it was on the
// wire, see [Retag].
package requests
