// SPDX-License-Identifier: Apache-2.0

// Package keyproviders writes the status of KeyProviders and ClusterKeyProviders, and the events
// about them.
//
// The poller asks each key gateway for its state every few seconds while there are providers. It
// compares the answers by provider, and adds to the queue what has changed. The reconciler
// merges the answers of all gateways about one provider, and writes its status if it differs in
// what somebody may be waiting for, or else after a while. No request goes to the API server while
// nothing changes. Both run on the leader.
//
// In the same way it writes the status of KeyAccessPolicies and KeyAccessPeers, from what key access
// services answer.
package keyproviders
