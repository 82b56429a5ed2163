// SPDX-License-Identifier: Apache-2.0

// Package pattern has the patterns of names that a profile lists: DNS names, networks, URIs and
// mail addresses. The functions Parse… report false for a text that is not a pattern. A pattern
// matches a name that is equal to it, except that "*" in the pattern stands for a part of the
// name.
package pattern
