// SPDX-License-Identifier: Apache-2.0

// Package regocheck asks a process of "gateway rego-check" what is wrong with a module in Rego. The operator asks it at admission, so
// that its own program has no compiler of Rego. The process is a container of the operator's pod, and its Unix socket is open to the user of
// both containers alone.
package regocheck
