// SPDX-License-Identifier: Apache-2.0

// Package rawio reads and writes sockets by system calls that it can make without telling Go's
// scheduler. On systems other than Linux it writes as package net does.
package rawio
