// SPDX-License-Identifier: Apache-2.0

// Package otlp sends the lines of an audit log to an OpenTelemetry Collector, as logs of OTLP over
// gRPC. Lines count as written once the collector has acknowledged them.
//
// The body of each log record is a line as it is in a file, so that the collected lines can be
// checked. docs/audit.md says what else a log record has.
package otlp
