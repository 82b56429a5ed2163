// SPDX-License-Identifier: Apache-2.0

// Package regochecker compiles modules in Rego for the operator, see package regocheck, each in a process of its own. OPA's compiler
// cannot be stopped, and its time and memory double with each level of some nested terms. A process can be ended.
package regochecker
