// SPDX-License-Identifier: Apache-2.0

// Package opentdf has tests of the key access service with OpenTDF's clients: the Go SDK, and
// otdf-python. It is a module of its own, so that the SDK is no dependency of the service.
package opentdf
