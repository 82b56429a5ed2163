// SPDX-License-Identifier: Apache-2.0

// Package crd has the CustomResourceDefinitions of this directory, for programs
// that check objects without a cluster as the API server does.
package crd

import "embed"

// Definitions has the folder bases with a file for each definition.
//
//go:embed bases/*.yaml
var Definitions embed.FS
