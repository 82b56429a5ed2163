// SPDX-License-Identifier: Apache-2.0

// Package telemetry reports the state of a broker. It has the Prometheus metrics, and the
// status port with /healthz, /readyz, /metrics, /profiles and /uses.
//
// A request changes only atomic counters, which are looked up when the set of profiles is loaded,
// or in a map that never changes. Metrics and answers are made from the counters when somebody
// asks. From a request, metrics contain only the name of a served profile. /uses also has the
// algorithms, the kinds and ids of keys, and the callers of served calls.
package telemetry
