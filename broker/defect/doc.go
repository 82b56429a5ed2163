// SPDX-License-Identifier: Apache-2.0

// Package defect describes panics for logs, without values that could be part of an input or a key.
package defect
