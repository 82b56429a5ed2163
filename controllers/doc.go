// SPDX-License-Identifier: Apache-2.0

// Package controllers adds reconcilers to a manager. They turn CryptoProfiles and
// ClusterCryptoProfiles into the sets that brokers serve, and report what brokers serve.
//
// Package profileset writes the set of profiles of each namespace into a ConfigMap.
// Package distribute brings the set into running brokers, and asks them what they
// serve. Package status reports it on the profiles. All three run on the leader.
//
// They pass results to each other directly, not through the API server. From the event of a
// changed profile to the annotation of the pods there are two writes and no wait. What is
// remembered of each namespace is in one store, package internal/state.
package controllers
