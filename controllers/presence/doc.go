// SPDX-License-Identifier: Apache-2.0

// Package presence finds pods that should have a broker and have none, and pods
// whose broker is another than a new pod would get. It counts both and tells the
// owners of the pods by events; it changes nothing.
//
// A pod without a broker that asked for one, by annotation or by the label of its
// namespace, was created while the API server could not call the operator, or
// before the operator or the label was there. Whether it has one is told by the
// broker's container, never by the webhook's stamp, which anybody may write. One
// that asked in a way that is refused should have one, too: its owner is told the
// refusal, since a restart would make no pods.
//
// A broker is outdated when its image is not the one that is injected now, or
// when the stamp names another template. Here the stamp counts: it is written
// anew at each admission, and whoever changes it afterwards deceives only
// themselves about a restart.
//
// Owners are also told of brokers that run and wait for the first set of profiles
// of their namespace: their pods show nothing but a probe that fails. That is no
// fault of an injection, and is not counted.
//
// Left out are pods that end or have ended, static pods, Windows pods, and those
// of namespaces that are never injected into.
//
// The owner that is told is the topmost that is known: of a ReplicaSet or a Job
// what controls it, such as a Deployment or a CronJob. Each owner is told once of
// what is so, again when it gets worse, and again after an hour, when the API
// server has forgotten the event. So many owners are told at a time that an
// outage of the webhook does not become one of the API server.
package presence
