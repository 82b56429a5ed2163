// SPDX-License-Identifier: Apache-2.0

// Package recent remembers for a while what a key manager said about its keys, so that not
// every operation has to ask. Identical questions at the same time are asked once.
package recent
