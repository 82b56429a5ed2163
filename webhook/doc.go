// SPDX-License-Identifier: Apache-2.0

// Package webhook is the operator's admission. It serves three webhooks to the API server. One
// puts a broker into pods that ask for one (package injection). Two refuse profiles that no
// broker would serve, and changes that would make the profiles of a namespace weaker without
// permission (package validation). The package writes nothing. It reads its request, a cache and
// the API server.
//
// This package bounds requests: their size, their memory and time, which are divided among
// clients and namespaces (package shares), and the length of an answer. For the injection of a
// pod, it reads the namespace of the pod, the profiles of the namespace, and the keys that sign
// the profiles. It fails closed: if it cannot decide about a pod, the pod is not created.
//
// # Use
//
//	server := server.New(…)   // of package webhook/server, as the manager's WebhookServer
//	err := webhook.Register(mgr, webhook.Options{Template: …, OperatorNamespace: …})
package webhook
