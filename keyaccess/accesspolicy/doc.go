// SPDX-License-Identifier: Apache-2.0

// Package accesspolicy decides who may have data keys, by policies in CEL (Common Expression Language), and in Rego where
// the caller of this package has a compiler for it (package regopolicy).
//
// A policy is a document of the kind KeyAccessPolicy. It says which data keys it applies to, and has rules that allow and rules
// that deny. A rule is an expression over attributes of the object, claims of the caller, its origin and the time. A data key is released if no rule denies, and if
// each policy that applies has a rule that allows.
//
// Expressions are compiled once, with the place of each error. Their cost is limited, and they have no regular expressions. A
// rule that cannot be evaluated never permits access.
package accesspolicy
