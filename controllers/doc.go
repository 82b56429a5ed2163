// SPDX-License-Identifier: Apache-2.0

// Package controllers turns CryptoProfiles and ClusterCryptoProfiles into what
// brokers serve, and reports what they serve.
//
// # One writer
//
// The namespace reconciler is the only one that renders. For each namespace it
// merges the CryptoProfiles in it with the ClusterCryptoProfiles that select it
// (package render) and writes the result to the ConfigMap
// crypto-broker-profiles, if its digest changed. A ConfigMap that somebody
// edited or deleted is restored. It then tells the distributor (package
// distribute), which brings the set into running brokers and learns from them
// what they serve. Two more reconcilers write the status of the profiles.
//
// What one learns it hands to the next directly, not through the API server:
// from the event of a changed profile to the annotation of the pods there are
// two writes and no wait.
//
// # A set that can't be written
//
// A set that is too large is not written at all: the one before stays, and the
// profiles say so. A profile that is invalid is left out, and only that one.
//
// # When the last profile of a namespace goes
//
// Its brokers must stop to serve it. To delete the ConfigMap would do the
// opposite: a pod without it falls back to the copy that it got at admission.
// So the ConfigMap stays, with an empty list of profiles, as long as there are
// pods with a broker, and loses its profile file after the last of them. Brokers
// take an empty list for what it says and refuse every call. A broker that can't be
// brought to it is reported by an event on the ConfigMap, since there is no
// profile left to report on.
//
// # Namespaces without profiles
//
// kube-system, kube-node-lease and the operator's own namespace get none. A
// namespace that is being deleted keeps what it has.
//
// # Weaker profiles
//
// Between rendering and writing the guard compares with what the namespace
// served (package downgrade), and keeps the old profile in the place of one that
// is weaker and not allowed. What it served is read from the ConfigMap: the set in
// it, and annotations with the profiles that were removed.
package controllers
