// SPDX-License-Identifier: Apache-2.0

//go:build binaries

// Package apiserver pins an API server of Kubernetes 1.30 for tests. It is never compiled, because Go refuses to import a main
// package. The import only makes go.mod and go.sum complete.
package apiserver

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
