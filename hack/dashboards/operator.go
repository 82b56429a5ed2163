// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// operator returns the dashboard for people who run the operator.
func operator() *dashboard.DashboardBuilder {
	expiry := ofOperator("crypto_broker_operator_certificate_expiry_timestamp_seconds")
	const ofOperators = " and on (cluster, instance) crypto_broker_operator_certificate_expiry_timestamp_seconds"
	// Several replicas may have been the leader during the time range of a query.
	inNamespaces := func(metric string, matchers ...string) string {
		return orZero("sum(max by (cluster, exported_namespace) (" + ofNamespaces(metric, matchers...) + "))")
	}
	const state = "Only the replica that leads has this number."
	return newDashboard("operator", "Operator", "Admission, propagation, certificates and rollouts.", operatorCluster, operatorNamespace).
		WithRow(row("Now")).
		WithPanel(atLeast("Replicas", "none", 4, "Replicas of the operator that Prometheus reaches.",
			orZero(count("", ofOperator("crypto_broker_operator_certificate_expiry_timestamp_seconds", `certificate="leaf"`))), level{1, "yellow"}, level{2, "green"})).
		WithPanel(number("Degraded profiles", "none", 4, "Profiles that are not served as their resources say. "+state,
			orZero(sum("", ofNamespaces("crypto_broker_operator_profile_conditions", `condition="Degraded"`, `status="True"`))), above(1)...)).
		WithPanel(number("Withheld profiles", "none", 4, "Profiles that are not served because they are weaker than what was served. "+state,
			inNamespaces("crypto_broker_operator_profiles_withheld"), level{1, "yellow"})).
		WithPanel(number("Pods without a broker", "none", 4, "Pods that should have a broker and have none. Restart their workloads. "+state,
			inNamespaces("crypto_broker_operator_pods_without_broker"), above(1)...)).
		WithPanel(number("Pods behind", "none", 4, "Pods whose broker serves an older set of profiles. "+state,
			inNamespaces("crypto_broker_operator_pods", `state="behind"`), above(1)...)).
		WithPanel(number("Outdated brokers", "none", 4, "Pods whose broker differs from the broker that a new pod would get. They go on working. "+state,
			inNamespaces("crypto_broker_operator_pods_outdated"), level{1, "yellow"})).
		WithRow(row("Admission")).
		WithPanel(lines("Pods by result", "none", 8, "Pods that the API server asked about in five minutes: injected, skipped, refused or error.",
			query{sum("result", increase(ofOperator("crypto_broker_operator_injections_total"), "5m")), "{{result}}"})).
		WithPanel(lines("Time to answer about a pod", "s", 8, "Time that the webhook took, within the last hour, or since the start of the operator where there was no pod.",
			quantilesOfRareEvents(ofOperator("crypto_broker_operator_injection_duration_seconds_bucket"))...)).
		WithPanel(lines("Profiles by result", "none", 8, "CryptoProfiles and ClusterCryptoProfiles that were checked at admission in five minutes.",
			query{sum("result", increase(ofOperator("crypto_broker_operator_profile_validations_total"), "5m")), "{{result}}"})).
		WithPanel(lines("Requests that the webhooks did not look at", "none", 12, "Requests in five minutes that were too large, too many at one time, late, or no JSON.",
			query{sum("reason", increase(ofOperator("crypto_broker_operator_webhook_refused_requests_total"), "5m")), "{{reason}}"})).
		WithPanel(lines("Connections that the webhooks closed", "none", 12, "Connections in five minutes of addresses that had too many, and connections whose TLS did not begin in time or failed.",
			query{sum("reason", increase(ofOperator("crypto_broker_operator_webhook_refused_connections_total"), "5m")), "{{reason}}"})).
		WithRow(row("Propagation")).
		WithPanel(heat("Time from change to served", "s", 12, "Brokers by the time from the write of a set until they confirmed that they serve it.",
			ofOperator("crypto_broker_operator_propagation_duration_seconds_bucket"))).
		WithPanel(lines("Percentiles of the time from change to served", "s", 12, "The same within the last hour, or since the start of the operator where there was no change.",
			quantilesOfRareEvents(ofOperator("crypto_broker_operator_propagation_duration_seconds_bucket"))...)).
		WithPanel(lines("Pods by state", "none", 8, "Pods with a broker: updated if the broker confirmed the current set, behind if it serves an older one, unverified if the operator cannot ask it.",
			query{sum("state", ofNamespaces("crypto_broker_operator_pods")), "{{state}}"})).
		WithPanel(lines("Annotations by try", "none", 8, "Annotations in five minutes that have kubelets refresh the profiles of a pod. Second and later tries mean that a kubelet did not act on the first.",
			query{orZero(sum("try", increase(ofOperator("crypto_broker_operator_patches_total"), "5m"))), "try {{try}}"})).
		WithPanel(list("Profiles with a condition", "none", 8, "Conditions of profiles that say that something is wrong or not known.",
			"profiles", orZero(sum("exported_namespace, kind, condition, status, reason", ofNamespaces("crypto_broker_operator_profile_conditions"))))).
		WithRow(row("Certificates and keys")).
		WithPanel(lines("Certificates expire in", "s", 8, "Time until the first certificate of any replica expires. leaf is what a replica serves with, ca is what signs it. The operator renews both long before.",
			query{"min by (certificate) (" + expiry + ") - time()", "{{certificate}}"})).
		WithPanel(lines("Age of the signing key", "s", 8, "Time since the current key that profiles are signed with became so. The operator makes the next one after signing.keyLifetime.",
			query{"time() - max(" + ofOperator("crypto_broker_operator_signing_key_current_since_timestamp_seconds") + " > 0)", "current key"})).
		WithPanel(lines("Signing keys", "none", 8, "Keys that profiles are signed with: the current one, and retired ones that running pods may depend on.",
			query{"max by (state) (" + ofOperator("crypto_broker_operator_signing_keys") + ")", "{{state}}"},
			query{sum("", increase(ofOperator("crypto_broker_operator_signing_key_rotations_total"), "1d")), "rotations in a day"})).
		WithRow(row("Rollouts")).
		WithPanel(lines("Rollouts by phase", "none", 8, "Profiles that are being rolled out, by phase.",
			query{"max by (cluster, phase) (" + ofOperator("crypto_broker_operator_rollouts") + ")", "{{phase}}"})).
		WithPanel(lines("Profiles that became weaker", "none", 8, "Profiles that became weaker in a day because somebody with the right to do so allowed it.",
			query{sum("", increase(ofOperator("crypto_broker_operator_profiles_weakened_total"), "1d")), "allowed"})).
		WithPanel(lines("Sets that stay as they are", "none", 8, "Namespaces whose set is held because profiles were deleted with their resource definition, and namespaces in which no set is written because it is not known what they served.",
			query{inNamespaces("crypto_broker_operator_sets_held"), "held"},
			query{inNamespaces("crypto_broker_operator_baselines_missing"), "not known"})).
		WithRow(row("Process")).
		WithPanel(lines("Reconciliations", "none", 8, "Reconciliations each second, by controller, and those that failed and are tried again.",
			query{sum("controller", rate(ofOperator("controller_runtime_reconcile_total"))+ofOperators), "{{controller}}"},
			query{orZero(sum("", rate(ofOperator("controller_runtime_reconcile_errors_total"))+ofOperators)), "failed"})).
		WithPanel(lines("Objects that wait for a controller", "none", 8, "Length of the queues of the controllers.",
			query{sum("controller", ofOperator("workqueue_depth")+ofOperators), "{{controller}}"})).
		WithPanel(lines("Memory", "bytes", 8, "Resident memory of the replicas.",
			query{ofOperator("process_resident_memory_bytes") + ofOperators, "{{pod}}"}))
}
