// SPDX-License-Identifier: Apache-2.0

// Package distribute brings a namespace's set of profiles into its running brokers,
// and knows which of them serve it.
//
// # How a set gets into a pod
//
// The set is in a ConfigMap, and the broker's volume projects the ConfigMap. A kubelet
// refreshes such a volume when it syncs the pod: about once a minute, and at once when
// the pod changes. So the distributor annotates each pod that is behind, and its kubelet
// syncs it. The first annotation removes the pod's snapshot. The value is "<digest>.<try>": a write of the same value again changes
// nothing, and so starts no sync. It is written through the pods/status subresource,
// which drops changes of anything but metadata and status.
//
// # How it is confirmed
//
// Only the answer of the broker on its status port is a confirmation. The annotation and
// the ConfigMap do not show what the broker serves. A broker is asked 0.3 s after the annotation and then every
// 0.25 s; while more than 100 annotations wait, first after 1.25 s. A pod that still serves another set 1.5 s after the
// annotation gets a new value, at most [MaxTries] times. Then it is left to its
// kubelet's own resync, and a condition and an event say so. A broker that can't be asked
// is unverified. It gets the annotation once, and is asked again at growing intervals. A
// broker that confirmed is asked again when its container was restarted, and every few
// minutes. Brokers that answer are asked before those that do not, so that the latter do
// not delay the former, however many they are.
//
// # State
//
// All state is in memory and about what brokers said. After a change of leader it is
// empty, and each broker is asked before anything is written. One pure function decides
// the next action for a pod, (*broker).next. Two controllers carry it out. One writes
// annotations, the other asks, so that brokers that don't answer never delay writing.
package distribute
