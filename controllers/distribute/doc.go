// SPDX-License-Identifier: Apache-2.0

// Package distribute brings a namespace's set of profiles into its running
// brokers and knows which of them serve it.
//
// # How a set gets into a pod
//
// The set is in a ConfigMap that the broker's volume projects. A kubelet
// refreshes such a volume when it syncs the pod, which it does about once a
// minute, or at once when the pod changes. So each pod that is behind gets an
// annotation: the kubelet sees another value and syncs. The value is
// "<digest>.<try>", because to write the same value again is no write and
// wakes nobody. It is written through the pods/status subresource, which drops
// changes of anything but metadata and status.
//
// # How it is confirmed
//
// A broker says on its status port what it serves, and nothing else counts: not
// the annotation, not the ConfigMap. A pod that still serves another set 1.5 s
// after the annotation gets a new value, three times at most; then it is left
// to its kubelet's own resync, and a condition and an event say so. A broker
// that can't be asked is unverified, gets the annotation once and is asked
// again at growing intervals. A broker that confirmed is asked again when its
// container was restarted, and every few minutes. Brokers that answer are asked
// before those that do not, so that any number of the latter holds up none of the
// former.
//
// # State
//
// All state is in memory and about what brokers said. After a change of leader
// it is empty, and each broker is asked before anything is written. What to do
// next with a pod is one pure function, (*broker).next; two controllers carry it
// out, one writes annotations, one asks, so that brokers that don't answer
// never hold up writing.
package distribute
