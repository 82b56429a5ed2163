// SPDX-License-Identifier: Apache-2.0

//go:build binaries

// Package containerd pins the programs with which a test cluster's node runs containers. It is never compiled, because Go refuses
// to import main packages. The imports only make go.mod and go.sum complete.
package containerd

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
	_ "github.com/opencontainers/runc"
)
