// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the whole product on a real cluster: the chart installed by helm, pods with a broker, an application that calls
// it as a released client does, and faults.
//
//	go test -tags e2e -timeout 40m -v ./test/e2e/...
//
// The tests make a cluster of their own named "e2e" and remove it at the end, even when they fail. With E2E_KEEP=1 it
// stays, and the next run uses it again. With E2E_COVER=FOLDER the programs write what the tests reach of them into that
// folder. Images, binaries and the diagnostics are in the cache folder of the repository.
package e2e
