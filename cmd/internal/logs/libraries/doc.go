// SPDX-License-Identifier: Apache-2.0

// Package libraries makes the libraries of a program that runs in Kubernetes write into its log.
package libraries
