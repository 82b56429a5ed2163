// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// heldBy describes how the program stops a propagation before a step.
const heldBy = "An admission policy refuses this one write to the operator. When the operator is there and tries, the program kills the leader with signal 9, and then removes the policy. The other replica goes on."

// leaderAct describes what to do after the leader was killed.
const leaderAct = "Nothing. The next leader begins when the lease of the old one has expired, after about 15 s, and compares everything with what it finds."

// faults are all faults that the program knows, in the order in which it makes them.
var faults = []*fault{
	{name: "none", title: "Nothing is broken",
		how:  "The profile changes, and nothing else happens. This row is for comparison.",
		sees: "The change is served after about a second.", act: "Nothing.",
		happen: breakNothing},
	{name: "killed-before-set", title: "The operator is killed before it writes the set",
		how:  heldBy,
		sees: "The change of the profile is accepted, and brokers serve the old one until there is a leader again. The other replica admits pods; a request that was at the killed one fails.",
		act:  leaderAct, happen: killedBefore(writingTheSet)},
	{name: "killed-before-annotations", title: "The operator is killed after it wrote the set",
		how:  heldBy,
		sees: "The set is written, and no kubelet was woken. Brokers serve the old set until the next leader wakes the kubelets, or until a kubelet looks by itself.",
		act:  leaderAct, happen: killedBefore(annotatingPods)},
	{name: "killed-among-annotations", title: "The operator is killed between the annotations of two pods",
		how:  heldBy,
		sees: "One pod serves the new profile, and the other the old one, until there is a leader again.",
		act:  leaderAct, happen: killedBefore(annotatingAllPods)},
	{name: "killed-before-statuses", title: "The operator is killed before it writes the status of the profile",
		how:  heldBy,
		sees: "All brokers serve the new profile, and its status says that they do not, until there is a leader again.",
		act:  leaderAct, happen: killedBefore(writingStatuses)},
	{name: "operator-gone", title: "Both replicas are gone while profiles change",
		how:    "The program scales the operator to 0 replicas, changes one profile, deletes another one, waits 10 s and scales the operator to 2 again.",
		sees:   "Profiles can be deleted, but not created or changed, and pods that ask for a broker are refused: both have an error with `failed calling webhook`. All other pods are admitted. Brokers serve on.",
		act:    "Bring the operator back: `kubectl -n crypto-broker-system get pods`. Apply refused changes again. ReplicaSets create refused pods again by themselves.",
		happen: operatorGone},
	{name: "network-cut", title: "The network between the API server and the operator is cut",
		how:    "For 30 s, `iptables` drops all packets from the operator to the API server, and from the API server to the webhook.",
		sees:   "As if the operator were gone, but the errors come only after the timeout of the webhook, 5 s. The leader gives its lease up and begins anew.",
		act:    "Mend the network. The operator then goes on by itself.",
		happen: networkCut},
	{name: "certificate-expired", title: "The serving certificates of the webhook expire",
		how:    "The program replaces the certificate authority of the operator by one that expires 20 s later, so the certificates that the replicas sign with it expire at the same time.",
		sees:   "Connections of the API server that exist go on. New ones fail until the replicas have another certificate, for up to 10 s.",
		act:    "Nothing. The operator makes another authority and other certificates. `kubectl crypto-broker check` shows how long they are valid.",
		happen: certificateExpired},
	{name: "set-deleted", title: "The ConfigMap with the profiles is deleted",
		how:    "The program takes away the policy that forbids it, and deletes `crypto-broker-profiles`.",
		sees:   "Brokers serve what they have. The operator makes the ConfigMap again.",
		act:    "Nothing. Do not switch the policy `profilesConfigMap` of the chart off.",
		happen: setDeleted},
	{name: "apiserver-and-etcd", title: "The API server and etcd are restarted",
		how:    "The program kills both with signal 9 and starts them again after 10 s.",
		sees:   "Nothing can be created or changed meanwhile. Brokers serve on. If the leader of the operator could not renew its lease for 10 s, it begins anew, and changes wait until the lease has expired.",
		act:    "Nothing. After a restore of etcd from a backup, see [signed profiles](tamper-evidence.md#after-etcd-was-restored-from-a-backup).",
		silent: true, happen: partsAway(10*time.Second, "etcd", "kube-apiserver")},
	{name: "slow-apiserver", title: "The API server is slow",
		how:    "For 20 s, the process of the API server is stopped for 900 ms of each second.",
		sees:   "Everything takes longer. A change is still served.",
		act:    "Find out why the API server is slow. The operator needs nothing.",
		silent: true, happen: slowServer},
	{name: "kubelet", title: "The kubelet is restarted",
		how:    "The program kills the kubelet with signal 9 and starts it again after 15 s. The profile changes meanwhile.",
		sees:   "Containers run on. A change reaches the brokers of the node when its kubelet is back. Until then, the profile has `PROPAGATED` `False`.",
		act:    "Bring the kubelet back.",
		happen: partsAway(15*time.Second, "kubelet")},
	{name: "containerd", title: "containerd is restarted",
		how:    "The program kills containerd with signal 9 and starts it again after 10 s. The profile changes meanwhile.",
		sees:   "Containers run on, and no container can be started.",
		act:    "Bring containerd back.",
		happen: partsAway(10*time.Second, "containerd")},
	{name: "broker-killed", title: "A broker is killed under load",
		how:     "The program kills the broker of one pod with signal 9.",
		sees:    "Calls in flight fail with `UNAVAILABLE`, and so do calls until the kubelet has started the broker again, after a second or two. Released clients repeat such calls. The application is not restarted.",
		act:     "Nothing. `kubectl logs POD -c crypto-broker --previous` says why a broker ended.",
		repeats: true, happen: brokerKilled},
	{name: "broker-out-of-memory", title: "A broker runs out of memory under load",
		how:     "A process in the broker's control group takes the memory that the broker may have, so the kernel kills the broker.",
		sees:    "As if the broker were killed. The pod's status says `OOMKilled`.",
		act:     "Set a higher `memory-limit`: [limits](limits.md).",
		repeats: true, happen: brokerOutOfMemory},
	{name: "disk-full", title: "The disk with the volumes of pods is full",
		how:    "All volumes of pods are in a file system of " + diskSize + "iB. The program fills it for 20 s.",
		sees:   "Running pods get a change all the same, because the kubelet keeps sets in memory. New pods are admitted, and start when there is room again.",
		act:    "Make room on the node.",
		happen: diskFull},
	{name: "clock", title: "The clock is ten minutes ahead",
		how:    "One machine has one clock, so the program does not set it. In the memory of the running processes of the operator, of the kubelet and of the brokers, it replaces the function that reads the time of day by one that adds ten minutes. Then it deletes the certificate authority of the operator, so that certificates are made with the wrong time, and changes the profile. At the end it puts the function back, which is a step of ten minutes back, and changes the profile once more. The API server, containerd and processes that start meanwhile have the right time.",
		sees:   "Nothing breaks. Certificates begin before they are made, and a set gets a higher revision than the one before, whatever the clock says.",
		act:    "Correct the clock.",
		happen: clockAhead},
}

func names() []string {
	var all []string
	for _, each := range faults {
		all = append(all, each.name)
	}
	return all
}
