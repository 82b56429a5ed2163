// SPDX-License-Identifier: Apache-2.0

// Package resources adapts the broker's process to what the machine and its control group
// give it: memory, processors and open files. It also keeps the memory of the process out
// of core dumps. It knows nothing of profiles and calls.
package resources
