// SPDX-License-Identifier: Apache-2.0

// Package telemetry reports the state of a broker. It has the Prometheus metrics, and the
// status port with /healthz, /readyz, /metrics, /profiles and /uses.
//
// A request changes only plain atomic counters, which were looked up when the set of
// profiles was loaded, or which a map has that never changes. Metrics and answers are made
// from them when somebody asks. Of a request, metrics contain only the name of a profile that
// is served. /uses also has what served calls used: algorithms, the kinds and ids of keys, and
// callers.
package telemetry
