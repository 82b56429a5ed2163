// SPDX-License-Identifier: Apache-2.0

// Package signing manages the keys that sets of profiles are signed with.
//
// # Where they are
//
// The keys (Ed25519, PKCS #8 in PEM) live in one Secret of the operator's namespace. The first
// replica makes it. One key is current: new pods trust only this key. Earlier keys are retired:
// they still sign for pods that trust no other key.
//
// # Rotation
//
// The leader makes a new key when the current one has reached its lifetime, or when the Secret
// has the annotation cryptobroker.io/rotate-signing-key. Then the previous key is retired, and
// every set is signed with both. It is removed once no running pod's broker depends on it, and an
// hour after its retirement at the earliest: until then another replica may let in pods that
// trust it. So no running broker ever sees a set that it cannot verify, and nothing has to be
// restarted.
//
// # When a key has leaked
//
// Delete the Secret, or the entry of the key. A new key is made at once and
// every set is signed again. Brokers of running pods keep serving the set that
// they have. They refuse sets that are signed with the new key alone, until their
// workloads are restarted.
//
// The operator never repairs an unreadable Secret by making new keys, because every
// running broker would refuse their signatures. Until somebody corrects the Secret,
// the operator signs nothing and injects no pod, and the error says what is wrong.
package signing

// The rights to manage the keys. The name belongs to an installation with default names, and the
// chart replaces it. The right to create Secrets cannot be limited by name, and is needed for the
// webhook's certificates, too. A policy of the chart narrows it to the two names.
//
// +kubebuilder:rbac:groups="",namespace=crypto-broker-system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=crypto-broker-system,resources=secrets,resourceNames=crypto-broker-operator-signing,verbs=get;list;watch;update
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
