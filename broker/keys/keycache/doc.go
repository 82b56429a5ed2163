// SPDX-License-Identifier: Apache-2.0

// Package keycache remembers the keys of a key manager for a short time, so that not every
// operation has to ask for them. Several callers that ask for the same key at the same time share
// one question.
package keycache
