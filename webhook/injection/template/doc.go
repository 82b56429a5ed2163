// SPDX-License-Identifier: Apache-2.0

// Package template describes the common settings of all brokers that an operator injects: image,
// resources, ports, and the collectors of traces and audit records. The values come from the
// operator's flags. [Template.Validate] names every value with which a broker would not start.
// The package does not know pods. Package injection puts the broker of a template into pods.
package template
