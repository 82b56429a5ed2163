// SPDX-License-Identifier: Apache-2.0

// Package leak finds secrets in the texts of other programs. A server, or a proxy before it, may quote a
// request in its error, and the error goes to the log.
package leak
