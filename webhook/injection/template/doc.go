// SPDX-License-Identifier: Apache-2.0

// Package template describes what all brokers that an operator injects have in common: image,
// resources, ports, and where they send traces and audit records. The values come from the
// operator's flags. [Template.Validate] names every value with which a broker would not start.
// The package knows nothing of pods; package injection puts the broker of a template into them.
package template
