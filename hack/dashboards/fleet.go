// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// Algorithms by whether a quantum computer breaks them, as "kubectl crypto-broker inventory" sorts them. All other algorithms have
// no key pairs.
const (
	quantumVulnerable = "rsa.*|ecdsa.*|ed25519|hpke-p-.*|session-v.*|session-hpke-p256"
	quantumResistant  = "hpke-ml-kem-.*|hpke-mlkem.*|session-hpke-x-wing"
)

// fleet returns the dashboard for people who are responsible for the cryptography of a cluster.
func fleet() *dashboard.DashboardBuilder {
	build := ofBrokers("crypto_broker_build_info")
	strength := ofBrokers("crypto_broker_profile_strength_bits")
	served := rate(ofBrokers("crypto_broker_served_requests_total"))
	loaded := ofBrokers("crypto_broker_profiles_last_reload_timestamp_seconds") + " > 0"
	ofStrength := func(condition string) string {
		return orZero(sum("", served+" and on (cluster, instance, profile) ("+strength+" "+condition+")"))
	}
	ofAlgorithms := func(matcher string) string {
		return orZero(sum("", rate(ofBrokers("crypto_broker_served_requests_total", matcher))))
	}
	return newDashboard("fleet", "Fleet", "Who serves what, how strong it is, and how changes reach brokers.", cluster, namespace, workload).
		WithRow(row("Brokers")).
		WithPanel(number("Brokers", "none", 4, "Brokers that Prometheus reaches.", orZero(count("", build)))).
		WithPanel(number("Namespaces", "none", 4, "Namespaces with a broker.", orZero(count("", count("cluster, namespace", build))))).
		WithPanel(number("Profiles", "none", 4, "Profiles that brokers serve. A profile of two namespaces counts twice.",
			orZero(count("", count("cluster, namespace, profile", strength))))).
		WithPanel(atLeast("Weakest profile", "none", 4, "Security strength in bits of the weakest that any profile allows. NIST disallows less than 112 bits.",
			"min("+strength+")", level{112, "yellow"}, level{128, "green"})).
		WithPanel(atLeast("FIPS 140-3 required", "percentunit", 4, "Share of the brokers that refuse operations which FIPS 140-3 does not approve.",
			"("+orZero(count("", ofBrokers("crypto_broker_fips_info", `enforced="true"`)))+") / "+count("", ofBrokers("crypto_broker_fips_info")),
			level{0, "yellow"}, level{1, "green"})).
		WithPanel(number("Quantum-vulnerable", "percentunit", 4, "Share of the calls whose algorithm has key pairs of RSA or elliptic curves.",
			"("+ofAlgorithms(`algorithm=~"`+quantumVulnerable+`"`)+") / clamp_min("+sum("", served)+", 1e-9)", level{0.01, "yellow"})).
		WithRow(row("Who serves what")).
		WithPanel(list("Profiles that are served", "none", 10, "Profiles by the workloads whose brokers serve them, with the security strength in bits of the weakest that they allow.",
			"bits", "min by (namespace, workload, profile) ("+strength+")")).
		WithPanel(list("What calls use", "reqps", 14, "Calls answered each second, by who called and what the call used. The container is empty if all callers share a socket.",
			"calls", "topk(100, "+sum("namespace, workload, container, profile, operation, algorithm", served)+" > 0)")).
		WithRow(row("Posture")).
		WithPanel(areas("Calls by strength", "reqps", 8, "Calls answered each second, by the security strength of the weakest that their profile allows.",
			query{ofStrength("< 112"), "below 112 bits"},
			query{ofStrength(">= 112 < 128"), "112 bits"},
			query{ofStrength(">= 128 < 192"), "128 bits"},
			query{ofStrength(">= 192"), "192 bits and more"})).
		WithPanel(areas("Calls by resistance to quantum computers", "reqps", 8, "Calls answered each second: vulnerable are key pairs of RSA and elliptic curves, resistant are those with ML-KEM. Hashes and ciphers have no key pairs.",
			query{ofAlgorithms(`algorithm=~"` + quantumVulnerable + `"`), "vulnerable"},
			query{ofAlgorithms(`algorithm=~"` + quantumResistant + `"`), "resistant"},
			query{ofAlgorithms(`algorithm!~"` + quantumVulnerable + "|" + quantumResistant + `"`), "no key pairs"})).
		WithPanel(lines("Brokers by FIPS 140-3", "none", 8, "Brokers by the version and the mode of the Go Cryptographic Module, and by whether they refuse what FIPS 140-3 does not approve.",
			query{count("module, mode, enforced", ofBrokers("crypto_broker_fips_info")), "module {{module}}, mode {{mode}}, enforced {{enforced}}"})).
		WithPanel(lines("Profiles by strength", "none", 12, "Profiles that brokers serve, by the security strength in bits of the weakest that they allow.",
			query{`count_values("bits", max by (cluster, namespace, profile) (` + strength + "))", "{{bits}} bits"})).
		WithPanel(lines("Use of deprecated profiles", "none", 12, "Calls for deprecated profiles in five minutes. A line at zero means that there are none.",
			query{orZero(sum("namespace, workload, profile", increase(ofBrokers("crypto_broker_deprecated_requests_total"), "5m"))), "{{namespace}} {{workload}} {{profile}}"})).
		WithRow(row("Propagation")).
		WithPanel(number("Namespaces between two sets", "none", 6, "Namespaces whose brokers serve more than one set of profiles. For about a second after a change; longer means that pods do not get it, or that a rollout is on its way.",
			orZero(count("", count("cluster, namespace", count("cluster, namespace, digest", ofBrokers("crypto_broker_profiles_info")))+" > 1")), above(1)...)).
		WithPanel(number("Rejected profiles", "none", 6, "Profiles that brokers were given and cannot serve.",
			orZero(sum("", ofBrokers("crypto_broker_profiles", `state="rejected"`))), above(1)...)).
		WithPanel(number("Last change", "s", 6, "Time since a broker last took up a set of profiles.", "time() - max("+loaded+")")).
		WithPanel(number("Oldest set", "s", 6, "Time since the broker with the oldest set took it up.", "time() - min("+loaded+")")).
		WithPanel(lines("Brokers by set", "none", 12, "Brokers that serve a set of profiles, by namespace and digest. A change shows as one line that goes down and another that comes up.",
			query{count("namespace, digest", ofBrokers("crypto_broker_profiles_info")), "{{namespace}} {{digest}}"})).
		WithPanel(lines("Time from change to served", "s", 12, "Time from the write of a set until a broker confirmed that it serves it, within the last hour, or since the start of the operator where there was no change.",
			quantilesOfRareEvents(ofOperator("crypto_broker_operator_propagation_duration_seconds_bucket"))...)).
		WithPanel(lines("Pods by state", "none", 12, "Pods with a broker: updated if the broker confirmed the current set, behind if it serves an older one, unverified if the operator cannot ask it.",
			query{sum("state", ofNamespaces("crypto_broker_operator_pods")), "{{state}}"})).
		WithPanel(lines("Refused sets by reason", "none", 12, "Sets of profiles that brokers found in five minutes and refused. They serve the last good set.",
			query{sum("reason", increase(ofBrokers("crypto_broker_profiles_rejections_total"), "5m")), "{{reason}}"}))
}
