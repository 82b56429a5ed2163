// SPDX-License-Identifier: Apache-2.0

// Package certificates holds the broker's certificates against zlint, a linter
// that knows RFC 5280 and the rules that grew around it. It is a module of its
// own, so that the linter is no dependency of the broker.
package certificates
