// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// broker returns the dashboard for people who run applications with brokers.
func broker() *dashboard.DashboardBuilder {
	requests := ofBrokers("crypto_broker_requests_total")
	failed := ofBrokers("crypto_broker_requests_total", `code!="OK"`)
	byWorkload := sum("namespace, workload", rate(requests))
	buckets := ofBrokers("crypto_broker_request_duration_seconds_bucket")
	// The metrics of the process have the same names in every Go program.
	process := func(metric string) string {
		return ofBrokers(metric) + " and on (cluster, instance) crypto_broker_build_info"
	}
	memory := "(" + ofBrokers("process_resident_memory_bytes") + " / " + ofBrokers("go_gc_gomemlimit_bytes") + " and on (cluster, instance) crypto_broker_build_info)"
	cpu := rate(ofBrokers("process_cpu_seconds_total")) + " and on (cluster, instance) crypto_broker_build_info"
	return newDashboard("broker", "Broker", "Calls to brokers: rate, errors, latency, and what the brokers need for them.", cluster, namespace, workload).
		WithRow(row("Now")).
		WithPanel(number("Calls", "reqps", 4, "Calls answered each second.", orZero(sum("", rate(requests))))).
		WithPanel(number("Failed calls", "percentunit", 4, "Share of the calls that were answered with another code than OK.",
			"("+orZero(sum("", rate(failed)))+") / clamp_min("+sum("", rate(requests))+", 1e-9)", above(0.01)...).Decimals(2)).
		WithPanel(number("Slowest hundredth", "s", 4, "Time within which 99 of 100 calls were answered, over all operations.", quantile(0.99, "", rate(buckets)), above(0.1)...)).
		WithPanel(number("Calls in flight", "none", 4, "Calls that brokers work on or that wait for their turn.", orZero(sum("", ofBrokers("crypto_broker_requests_in_flight"))))).
		WithPanel(number("CPU", "none", 4, "Processors that the brokers need together.", sum("", cpu)).Decimals(2)).
		WithPanel(number("Fullest memory", "percentunit", 4, "Resident memory of the broker that is nearest to its limit, as a share of the 7/8 of the limit that Go may use.",
			"max("+memory+")", level{0.8, "yellow"}, level{1, "red"})).
		WithRow(row("Rate")).
		WithPanel(areas("Calls by operation", "reqps", 8, "Calls answered each second, by operation. Operations without calls are left out.",
			query{sum("operation", rate(requests)) + " > 0", "{{operation}}"})).
		WithPanel(areas("Calls by profile", "reqps", 8, `Calls answered each second, by profile. "unknown" counts names that the broker has no profile for.`,
			query{sum("profile", rate(requests)) + " > 0", "{{profile}}"})).
		WithPanel(areas("Calls by workload", "reqps", 8, "Calls answered each second, by namespace and workload.",
			query{"topk(20, " + sum("namespace, workload", rate(requests)) + " > 0)", "{{namespace}} {{workload}}"})).
		WithRow(row("Errors")).
		WithPanel(areas("Errors by code", "reqps", 8, "Calls answered each second with another code than OK, by code and profile. A line at zero means that there are none.",
			query{orZero(sum("code, profile", rate(failed)) + " > 0"), "{{code}} {{profile}}"})).
		WithPanel(areas("Errors by container", "reqps", 8, "Calls answered each second with another code than OK, by the container that called and code. The container is empty if all callers share a socket. A line at zero means that there are none.",
			query{orZero("topk(20, " + sum("namespace, workload, container, code", rate(ofBrokers("crypto_broker_failed_requests_total"))) + " > 0)"), "{{namespace}} {{workload}} {{container}} {{code}}"})).
		WithPanel(lines("Share of failed calls by workload", "percentunit", 8, "Share of the calls that were answered with another code than OK, by workload.",
			query{"topk(20, (" + sum("namespace, workload", rate(failed)) + " or 0 * " + byWorkload + ") / " + byWorkload + " >= 0)", "{{namespace}} {{workload}}"})).
		WithRow(row("Latency")).
		WithPanel(heat("Duration of calls", "s", 12, "Calls by the time until their answer. A cell has the calls of one bucket of the histogram in a moment.", buckets)).
		WithPanel(lines("Percentiles of the duration", "s", 12, "Time within which half, 95 and 99 of 100 calls were answered, over all operations.", quantiles(buckets)...)).
		WithPanel(lines("Slowest hundredth by operation", "s", 12, "Time within which 99 of 100 calls of an operation were answered. Operations without calls are left out.",
			query{quantile(0.99, "operation", rate(buckets)), "{{operation}}"})).
		WithPanel(lines("Slowest hundredth by workload", "s", 12, "Time within which 99 of 100 calls of a workload were answered.",
			query{"topk(20, " + quantile(0.99, "namespace, workload", rate(buckets)) + ")", "{{namespace}} {{workload}}"})).
		WithRow(row("Resources")).
		WithPanel(lines("Memory", "bytes", 8, "Resident memory of the largest broker of a workload.",
			query{"topk(20, max by (namespace, workload) (" + process("process_resident_memory_bytes") + "))", "{{namespace}} {{workload}}"})).
		WithPanel(lines("Memory as a share of what Go may use", "percentunit", 8, "Resident memory of the ten fullest brokers, as a share of the 7/8 of the limit that Go may use. Above 1 the alert CryptoBrokerMemoryHigh fires.",
			query{"topk(10, max by (namespace, pod) (" + memory + "))", "{{namespace}} {{pod}}"})).
		WithPanel(lines("CPU", "none", 8, "Processors that the brokers of a workload need together.",
			query{"topk(20, " + sum("namespace, workload", cpu) + ")", "{{namespace}} {{workload}}"})).
		WithPanel(lines("Open files", "none", 8, "Open files and connections of the broker of a workload that has the most.",
			query{"topk(20, max by (namespace, workload) (" + process("process_open_fds") + "))", "{{namespace}} {{workload}}"})).
		WithPanel(lines("Goroutines", "none", 8, "Goroutines of the broker of a workload that has the most.",
			query{"topk(20, max by (namespace, workload) (" + process("go_goroutines") + "))", "{{namespace}} {{workload}}"})).
		WithPanel(lines("Keys by state", "none", 8, "Keys of the key directories: used, or unusable because of a problem that the log of the broker has. A line at zero means that no broker has a key directory.",
			query{orZero(sum("state", ofBrokers("crypto_broker_keys"))), "{{state}}"}))
}
