// SPDX-License-Identifier: Apache-2.0

// Package buffers has the pool of the buffers that messages are read into and written from. It
// overwrites each buffer that is put back, because any message may contain secrets.
package buffers
