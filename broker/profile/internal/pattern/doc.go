// SPDX-License-Identifier: Apache-2.0

// Package pattern has the patterns of names that a profile lists: DNS names, networks,
// URIs and mail addresses. A pattern is read by Parse…, which reports false for a text that
// is none, and compares names exactly but for what its "*" stands for.
package pattern
