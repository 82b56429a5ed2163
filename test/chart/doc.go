// SPDX-License-Identifier: Apache-2.0

// Package chart tests what users install: the Helm chart and the kustomize
// tree. It renders both with the real programs, which hack/tools/build builds
// once, and checks the objects.
//
// Plain `go test` needs no cluster. With the build tag apiserver the tests apply
// the objects to a real API server, and try the admission policies and the match
// conditions of the webhooks as the users whom they concern.
package chart
