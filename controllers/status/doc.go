// SPDX-License-Identifier: Apache-2.0

// Package status writes the status of CryptoProfiles and ClusterCryptoProfiles, and
// the events about them.
//
// A request of the profile reconciler names a namespace. The reconciler reads the decision about
// its set from the store of package state, and counts its brokers (package distribute). It writes
// the status of each CryptoProfile of the namespace if it differs, and adds the results for
// ClusterCryptoProfiles to the totals. A request of the cluster reconciler names a
// ClusterCryptoProfile, whose status is written from the totals over its namespaces. The cost of
// an event in one namespace does not depend on the number of namespaces.
//
// A status that differs only in numbers is written with a delay, so that a rollout
// makes few writes: at most 20 statuses a second of a namespace, and as many of all
// ClusterCryptoProfiles on average. A change of one profile among many is written on that
// profile alone, and does not wait for these.
package status
