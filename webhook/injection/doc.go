// SPDX-License-Identifier: Apache-2.0

// Package injection puts a broker into a pod. Inject takes a pod and returns the pod with its
// broker. The result depends only on the arguments, so the webhook, the kubectl plugin and tests
// get the same pod. Parameters returns the same container for policies in the API server that
// inject.
//
// # Which pods
//
// A pod asks with the annotation cryptobroker.io/inject: "true". In a namespace with the label
// cryptobroker.io/injection: enabled every pod asks, unless it declines with the value "false".
// Any other value is refused. Windows pods, mirror pods and pods of kube-system, kube-node-lease
// and the operator's namespace never get a broker.
//
// # What an injected pod gets
//
//   - The broker as an init container that keeps running (restartPolicy
//     Always), the first of all, so that every other container finds it
//     serving. It satisfies Pod Security "restricted". Its startup probe needs
//     a loaded set of profiles and waits ten minutes for one. It has no
//     liveness probe: a broker that is slow under load would be killed by one,
//     together with the calls that made it slow, and a broker that died is
//     restarted anyway.
//   - A volume in memory for sockets. The broker mounts it whole; every other
//     container mounts only the directory with its own name, read-only, at
//     /tmp/open-crypto-broker. So the broker knows by the socket which container calls.
//   - A volume with the namespace's profiles, for the broker only.
//   - A supplemental group that owns the sockets, so that a container with any
//     user ID can connect.
//   - Annotations: the stamp cryptobroker.io/injected, the copy of the profiles
//     at admission cryptobroker.io/profiles-snapshot, the name of the socket
//     volume in cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes
//     besides what the owner lists there, and prometheus.io/scrape, port and
//     path, these three only if the pod has no annotation of prometheus.io.
//
// Nothing else of the pod changes. See Inject for pods that cannot be
// injected and for what happens at a second call.
//
// # Where the status port is off
//
// A pod on the host's network would open the status port on its node, and a
// port that one of the pod's containers declares is taken. There the broker
// opens no port, its startup probe runs "broker health" inside the container,
// and the operator counts the pod as unverified.
package injection
