// SPDX-License-Identifier: Apache-2.0

// Package telemetry tells the outside how a broker is doing: Prometheus metrics
// and the status port with /healthz, /readyz, /metrics and /profiles.
//
// What a request touches are plain atomic counters that were looked up when the
// set of profiles was loaded; they become metrics only when they are collected.
// No metric and no status answer contains anything of a request but the name of
// a profile that is served.
package telemetry
