// SPDX-License-Identifier: Apache-2.0

// Package chart tests what users install: the Helm chart and the kustomize
// tree. It renders both with the real programs, which hack/tools/build builds
// once, and checks the objects.
//
// Plain `go test` needs no cluster. With the build tag apiserver the objects go
// to a real API server, where the admission policies and the webhooks'
// conditions are tried by the users that they are about.
package chart
