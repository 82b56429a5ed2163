// SPDX-License-Identifier: Apache-2.0

// Package catalogue has the manifests of this directory, for the operator to
// apply: what `kubectl apply -k config/samples/catalogue` makes is what it makes.
package catalogue

import "embed"

// Manifests has a file NAME.yaml for each profile, of which metadata.name is
// NAME, and kustomization.yaml.
//
//go:embed *.yaml
var Manifests embed.FS
