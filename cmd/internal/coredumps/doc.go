// SPDX-License-Identifier: Apache-2.0

// Package coredumps keeps the memory of a program that has keys out of core dumps.
package coredumps
