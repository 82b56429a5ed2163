// SPDX-License-Identifier: Apache-2.0

// Package resources adapts the broker's process to the memory, processors and open files that the
// machine and its control group allow. It does not know profiles and calls.
package resources
