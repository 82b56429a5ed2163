// SPDX-License-Identifier: Apache-2.0

// Package collector tests the broker's spans with a real OpenTelemetry Collector,
// built from its Go modules. The collector receives spans by OTLP over gRPC and
// HTTP, and passes them on to the test.
package collector
