// SPDX-License-Identifier: Apache-2.0

// Package resources adapts the broker's process to what the machine and its control group
// give it: memory, processors and open files. It knows nothing of profiles and calls.
package resources
