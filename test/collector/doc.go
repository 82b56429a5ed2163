// SPDX-License-Identifier: Apache-2.0

// Package collector tests the spans of the broker as a collector of
// OpenTelemetry gets them: a real one, built from its Go modules, takes them by
// OTLP over gRPC and HTTP and passes them on to the test.
package collector
