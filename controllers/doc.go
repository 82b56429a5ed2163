// SPDX-License-Identifier: Apache-2.0

// Package controllers adds to a manager the reconcilers that turn CryptoProfiles and
// ClusterCryptoProfiles into what brokers serve, and that report what brokers serve.
//
// Package profileset writes the set of profiles of each namespace into a ConfigMap.
// Package distribute brings the set into running brokers, and asks them what they
// serve. Package status reports it on the profiles. All three run on the leader.
//
// They hand on what they learn directly, not through the API server: from the event
// of a changed profile to the annotation of the pods there are two writes and no wait.
// What is remembered of each namespace is in one store, package internal/state.
package controllers
