// SPDX-License-Identifier: Apache-2.0

// Package collector tests spans and audit records of brokers with a real OpenTelemetry Collector,
// built from its Go modules. The collector receives spans by OTLP over gRPC and
// HTTP, and passes them on to the test. It receives audit records by OTLP over gRPC, and
// writes them into a file. The trace of a change of a profile comes from an operator beside a real
// API server.
package collector
