// SPDX-License-Identifier: Apache-2.0

// Package regopolicy compiles and evaluates access policies in Rego, by OPA. Only the gateway has it: its program is larger by it,
// and OPA's compiler cannot be stopped. Others have modules compiled by it, see package regocheck.
package regopolicy
