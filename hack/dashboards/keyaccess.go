// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// service selects key access services by the address that Prometheus scrapes.
var service = variable{"instance", "Service", `label_values(crypto_broker_gateway_key_access_requests_in_flight{cluster=~"$cluster"}, instance)`}

var keyAccessCluster = variable{"cluster", "Cluster", `label_values(crypto_broker_gateway_key_access_requests_in_flight, cluster)`}

// ofService selects a metric of the key access services that the reader has chosen.
func ofService(metric string, matchers ...string) string {
	return selector("crypto_broker_gateway_key_access_"+metric, append([]string{`cluster=~"$cluster"`, `instance=~"$instance"`}, matchers...))
}

// keyAccess returns the dashboard for people who run a key access service.
func keyAccess() *dashboard.DashboardBuilder {
	const fromClient = `from="client"`
	requests := ofService("requests_total", fromClient)
	// The outcomes that callers have not caused.
	failed := ofService("requests_total", fromClient, `outcome=~"internal|unavailable|shed|deadline_exceeded"`)
	buckets := ofService("request_duration_seconds_bucket", fromClient)
	process := func(metric string) string {
		return selector(metric, []string{`cluster=~"$cluster"`, `instance=~"$instance"`}) + " and on (cluster, instance) crypto_broker_gateway_key_access_requests_in_flight"
	}
	return newDashboard("key-access", "Key access", "Requests for data keys: latency, throughput, errors, caches, federation and limits.", keyAccessCluster, service).
		WithRow(row("Now")).
		WithPanel(number("Requests", "reqps", 4, "Requests of clients for data keys that ended each second.", sum("", rate(requests)))).
		WithPanel(number("Failed requests", "percentunit", 4, "Share of the requests that failed without a fault of the caller. Above 0.5 % the alert CryptoBrokerKeyAccessErrors fires.",
			sum("", rate(failed))+" / clamp_min("+sum("", rate(requests))+", 1e-9)", above(0.005)...).Decimals(2)).
		WithPanel(number("Slowest twentieth", "s", 4, "Time within which 95 of 100 requests of clients were answered. Above 200 ms the alert CryptoBrokerKeyAccessSlow fires.",
			quantile(0.95, "", rate(buckets)), above(0.2)...)).
		WithPanel(number("Data keys released", "none", 4, "Data keys that were released each second.", sum("", rate(ofService("data_keys_total", `result="released"`)))).Decimals(1)).
		WithPanel(number("Requests in flight", "none", 4, "Requests that have no reply yet.", sum("", ofService("requests_in_flight")))).
		WithPanel(number("Requests that wait", "none", 4, "Requests of clients that wait in the queue.", sum("", ofService("requests_waiting")), level{1, "yellow"})).
		WithRow(row("Latency and throughput")).
		WithPanel(heat("Duration of requests", "s", 12, "Requests of clients by the time until their answer. Time in the queue counts.", buckets)).
		WithPanel(lines("Percentiles of the duration", "s", 12, "Time within which half, 95 and 99 of 100 requests of clients were answered.", quantiles(buckets)...)).
		WithPanel(areas("Requests by source", "reqps", 12, "Requests for data keys that ended each second, of clients and of peers.",
			query{sum("from", rate(ofService("requests_total"))), "{{from}}"})).
		WithPanel(areas("Data keys by result", "none", 12, "Data keys that the service decided about itself each second.",
			query{sum("result", rate(ofService("data_keys_total"))), "{{result}}"})).
		WithRow(row("Errors and limits")).
		WithPanel(areas("Refused requests by reason", "reqps", 12, "Requests of clients each second that were refused as a whole, by reason.",
			query{sum("outcome", rate(ofService("requests_total", fromClient, `outcome!="answered"`))), "{{outcome}}"})).
		WithPanel(lines("Limits", "reqps", 6, "Requests each second of callers or tenants that make too many, and those that found no place.",
			query{sum("", rate(ofService("requests_total", `outcome="rate_limited"`))), "rate limited"},
			query{sum("", rate(ofService("requests_total", `outcome="shed"`))), "shed"})).
		WithPanel(lines("Room for proofs", "percentunit", 6, "Proofs that are remembered, as a share of those that can be.",
			query{"max(" + ofService("proofs") + " / " + ofService("proof_limit") + ")", "used"})).
		WithRow(row("Caches")).
		WithPanel(lines("Hit rate of the keys of issuers and of tokens", "percentunit", 12, "Share of the tokens whose key of their issuer was there, and of the tokens whose signature was checked before. Below 75 % of the keys the alert CryptoBrokerKeyAccessMissesKeys fires.",
			query{sum("", rate(ofService("issuer_key_lookups_total", `result="hit"`))) + " / clamp_min(" + sum("", rate(ofService("issuer_key_lookups_total"))) + ", 1e-9)", "keys"},
			query{sum("", rate(ofService("token_signature_lookups_total", `result="hit"`))) + " / clamp_min(" + sum("", rate(ofService("token_signature_lookups_total"))) + ", 1e-9)", "signatures of tokens"})).
		WithPanel(lines("Requests to issuers", "reqps", 12, "Requests for the keys of issuers each second, by result.",
			query{sum("result", rate(ofService("issuer_fetches_total"))), "{{result}}"})).
		WithPanel(lines("Hit rate of data keys", "percentunit", 12, "Share of the looks for data keys of key managers that found one, or that waited for another request which asked for the same. A line at zero means that no key is in a key manager.",
			query{orZero(sum("", rate(ofService("data_key_lookups_total", `result=~"hit|coalesced"`))) + " / clamp_min(" + sum("", rate(ofService("data_key_lookups_total"))) + ", 1e-9)"), "hits"})).
		WithPanel(lines("Requests to key managers for 1,000 requests", "none", 12, "Requests to key managers for each 1,000 requests for data keys.",
			query{orZero("1000 * " + sum("", rate(ofService("key_manager_requests_total"))) + " / clamp_min(" + sum("", rate(ofService("requests_total"))) + ", 1e-9)"), "requests"})).
		WithRow(row("Federation")).
		WithPanel(areas("Requests to peers", "reqps", 8, "Requests to other key access services each second, by peer and how they ended.",
			query{sum("peer, result", rate(ofService("peer_requests_total"))) + " > 0", "{{peer}} {{result}}"})).
		WithPanel(lines("Slowest twentieth by peer", "s", 8, "Time within which 95 of 100 requests to a peer were answered.",
			query{quantile(0.95, "peer", rate(ofService("peer_request_duration_seconds_bucket"))), "{{peer}}"})).
		WithPanel(lines("Usable peers", "none", 8, "Whether a peer gets requests: 1, or 0 after failures.",
			query{"min by (peer) (" + ofService("peer_usable") + ")", "{{peer}}"})).
		WithRow(row("Resources")).
		WithPanel(lines("Memory", "bytes", 6, "Resident memory of the services.", query{process("process_resident_memory_bytes"), "{{instance}}"})).
		WithPanel(lines("CPU", "none", 6, "Processors that the services need.",
			query{"rate(" + selector("process_cpu_seconds_total", []string{`cluster=~"$cluster"`, `instance=~"$instance"`}) + "[$__rate_interval]) and on (cluster, instance) crypto_broker_gateway_key_access_requests_in_flight", "{{instance}}"})).
		WithPanel(lines("Goroutines", "none", 6, "Goroutines of the services.", query{process("go_goroutines"), "{{instance}}"})).
		WithPanel(lines("Open files", "none", 6, "Open files and connections of the services.", query{process("process_open_fds"), "{{instance}}"}))
}
