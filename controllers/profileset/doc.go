// SPDX-License-Identifier: Apache-2.0

// Package profileset decides which set of profiles each namespace gets, signs the
// set, and writes it into the ConfigMap crypto-broker-profiles of the namespace.
//
// # One writer
//
// One reconciler renders and writes. A request names a namespace. The reconciler
//
//  1. merges the CryptoProfiles of the namespace with the ClusterCryptoProfiles
//     that select it (package render),
//  2. compares the result with what the namespace served (guard, package
//     downgrade), and keeps the old profile where the new one is weaker and not
//     allowed,
//  3. keeps profiles that went with their resource definition (definitions),
//  4. numbers and signs the set (sealer), and writes it if it differs from the
//     ConfigMap. A ConfigMap that somebody edited or deleted is restored.
//  5. hands the set to the distributor, and then publishes its decision in the
//     store of package state, from which statuses are written.
//
// What is remembered of a namespace is in that store alone. The record of what
// namespaces were given outlasts the process, and is a ConfigMap in the operator's
// own namespace.
//
// # A set that cannot be written
//
// A set that is too large is not written at all: the one before stays, and the
// profiles say so. A profile that is invalid is left out, and only that one.
//
// # When the last profile of a namespace goes
//
// Its brokers must stop serving it. Deleting the ConfigMap would do the opposite:
// a pod without it falls back to the copy that it got at admission. So the
// ConfigMap stays, with an empty list of profiles, as long as there are pods with
// a broker, and loses its profile file after the last of them. Brokers refuse
// every call then. An event on the ConfigMap reports a broker that does not take
// the empty list, since there is no profile left to report on.
//
// # Namespaces without profiles
//
// kube-system, kube-node-lease and the operator's own namespace get none. A
// namespace that is being deleted keeps what it has.
package profileset
