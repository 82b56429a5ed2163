// SPDX-License-Identifier: Apache-2.0

// Package presence finds pods that should have a broker and have none, and pods with another
// broker than a new pod would get. It counts both, and reports them by events on the owners of
// the pods. It changes nothing.
//
// A pod without a broker that asked for one, by annotation or by the label of its namespace, was
// created while the API server could not call the operator, or before the operator or the label
// was there. A pod has a broker if it has the broker's container. The webhook's stamp does not
// count, because anybody may write it. A pod whose annotations are refused should have a broker,
// too. The event says why a new pod would be refused, because a restart would make no pods.
//
// A broker is outdated if its image is not the current one, or if the stamp names another
// template. Here the stamp counts, because each admission writes it, and a user who changes it
// afterwards affects only their own pods.
//
// Owners also get an event about brokers that run and wait for the first set of
// profiles of their namespace, since such a pod shows nothing but a probe that fails.
// Injection is not at fault there, and the metrics do not count it.
//
// Pods are counted by difference: the event of a pod changes the numbers of its owner
// and of its namespace. No pod is looked at because of another one.
//
// Left out are pods that end or have ended, static pods, Windows pods, and pods of
// namespaces without injection.
//
// The event is on the topmost owner that is known: instead of a ReplicaSet or a Job it is
// the controller of the ReplicaSet or Job, such as a Deployment or a CronJob. An owner gets an event once,
// again when the numbers get worse, and again after an hour, when the API server has
// forgotten the event. The rate of events is limited, so that an outage of the webhook
// does not overload the API server.
package presence
