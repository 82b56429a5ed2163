// SPDX-License-Identifier: Apache-2.0

// Package redis keeps sessions in Redis, where all brokers with the same settings use them.
//
// A session is a hash with its record, its wrapped key and its counts, and a sorted set with the nonces of
// its requests by their time. Both expire with the session, and have one hash tag, so that they are on one
// server of a cluster. Scripts change them, each in one step.
//
// A session belongs to the process of Redis that it began at, by its run id. Redis replicates later than it answers, and writes to
// the disk later, so a replica that takes over, or a restarted server, may not know a nonce. In both cases the sessions end. A session also belongs
// to the history of the data that Redis names by its replication id, because a former master may take over again.
//
// Nothing depends on the clock of Redis: brokers give the times. Nonces are forgotten when they leave the
// window by the clock of any broker. The session accepts no request from before that time any more, at any
// broker.
package redis
