// SPDX-License-Identifier: Apache-2.0

// Package resources makes policies and peers of a key access service from KeyAccessPolicies and
// KeyAccessPeers, and says what is wrong with them. The webhook and the service both call it, so that
// what is admitted is what the service accepts.
package resources
