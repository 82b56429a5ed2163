// SPDX-License-Identifier: Apache-2.0

// Package unixsocket makes the Unix sockets of a broker, and identifies their callers.
//
// A broker has one socket for all callers, or one for each container, in a directory of
// its own. Another broker cannot use the directory at the same time, and the sockets are
// open only to the users that [Options] names.
//
// The socket identifies the container and the profiles that it may use, see [Identity]. The
// kernel reports the user and the group, see [PeerOf].
package unixsocket
