// SPDX-License-Identifier: Apache-2.0

// Package telemetry reports the state of a broker. It has the Prometheus metrics, and the
// status port with /healthz, /readyz, /metrics and /profiles.
//
// A request changes only plain atomic counters, which were looked up when the set of
// profiles was loaded. Metrics are made from them when somebody collects metrics. Of a
// request, metrics and status answers contain only the name of a profile that is served.
package telemetry
