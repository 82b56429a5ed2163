// SPDX-License-Identifier: Apache-2.0

// Package webhook is the operator's admission. It serves three webhooks to the API
// server: one puts a broker into pods that ask for one (package injection), two
// refuse profiles that no broker would serve, or that would make what a namespace is
// served weaker without being allowed (package validation). It writes nothing; it
// knows its request, a cache and the API server to read from.
//
// This package bounds what requests may take: their size, the memory and time that
// are divided among clients and namespaces (package shares), and the length of an
// answer. It reads what the injection of a pod depends on: the pod's namespace, the
// namespace's profiles and the keys that these are signed with. It fails closed: a
// pod that cannot be decided on is not created.
//
// # Use
//
//	server := server.New(…)   // of package webhook/server, as the manager's WebhookServer
//	err := webhook.Register(mgr, webhook.Options{Template: …, OperatorNamespace: …})
package webhook
