// SPDX-License-Identifier: Apache-2.0

// Package keyproviders writes the status of KeyProviders and ClusterKeyProviders, and the events
// about them.
//
// The poller asks each key gateway for its state every few seconds while there are providers. It
// compares the answers by provider, and adds changed providers to the queue. The reconciler
// merges the answers of all gateways about one provider. It writes the status at once if the
// change is important, and otherwise after a while. While nothing changes, it makes no request to
// the API server. Both run on the leader.
//
// In the same way it writes the status of KeyAccessPolicies and KeyAccessPeers, from the answers
// of key access services.
package keyproviders
