// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// refusal matches the codes of calls that a broker does not serve because of the request: the
// profile, the key, the caller or the input is not allowed.
const refusal = `code=~"PermissionDenied|FailedPrecondition|InvalidArgument|Unauthenticated|NotFound|OutOfRange|Unimplemented"`

// audit returns the dashboard for people who look for misuse.
func audit() *dashboard.DashboardBuilder {
	refused := ofBrokers("crypto_broker_requests_total", refusal)
	records := func(result string) string {
		return ofBrokers("crypto_broker_audit_records_total", `result="`+result+`"`)
	}
	operatorRecords := func(result string) string {
		return ofOperator("crypto_broker_operator_audit_records_total", `result="`+result+`"`)
	}
	lost := "(" + orZero(sum("", increase(records("lost"), "1h"))) + ") + (" + orZero(sum("", increase(operatorRecords("lost"), "1h"))) + ")"
	return newDashboard("audit", "Audit", "Who was refused what and why, and audit records that were written and lost.", cluster, namespace, workload).
		WithRow(row("Now")).
		WithPanel(number("Refused calls", "reqps", 4, "Calls each second that brokers refused because of the request.", orZero(sum("", rate(refused))), level{1, "yellow"}).Decimals(2)).
		WithPanel(number("Refused pods", "none", 4, "Pods that the webhook refused in an hour.",
			orZero(sum("", increase(ofOperator("crypto_broker_operator_injections_total", `result="refused"`), "1h"))), level{1, "yellow"}).Decimals(0)).
		WithPanel(number("Refused profiles", "none", 4, "CryptoProfiles and ClusterCryptoProfiles that were refused at admission in an hour.",
			orZero(sum("", increase(ofOperator("crypto_broker_operator_profile_validations_total", `result="refused"`), "1h"))), level{1, "yellow"}).Decimals(0)).
		WithPanel(number("Withheld profiles", "none", 4, "Profiles that are not served because they are weaker than what was served.",
			orZero("sum(max by (cluster, exported_namespace) ("+ofNamespaces("crypto_broker_operator_profiles_withheld")+"))"), above(1)...)).
		WithPanel(number("Records written", "none", 4, "Audit records of brokers and of the operator that were written each second.",
			"("+orZero(sum("", rate(records("written"))))+") + ("+orZero(sum("", rate(operatorRecords("written"))))+")").Decimals(2)).
		WithPanel(number("Records lost", "none", 4, "Audit records of brokers and of the operator that were lost in an hour.", lost, above(1)...).Decimals(0)).
		WithRow(row("Refusals")).
		WithPanel(list("Refusals by caller and reason", "none", 14, "Calls that were refused in the time of the dashboard, by who called, what was called and the code. The audit records have the container, the user and the text of the error.",
			"refused", "topk(100, "+sum("namespace, workload, profile, operation, code", increase(refused, "$__range"))+" > 0)")).
		WithPanel(areas("Refusals by code", "reqps", 10, "Calls refused each second, by code.", query{orZero(sum("code", rate(refused)) + " > 0"), "{{code}}"})).
		WithPanel(lines("Refusals by workload", "reqps", 12, "Calls refused each second, by namespace and workload. A workload that tries what it may not stands out.",
			query{orZero("topk(20, " + sum("namespace, workload", rate(refused)) + " > 0)"), "{{namespace}} {{workload}}"})).
		WithPanel(lines("Refusals at admission", "none", 12, "Pods and profiles that the webhooks refused in five minutes.",
			query{orZero(sum("", increase(ofOperator("crypto_broker_operator_injections_total", `result="refused"`), "5m"))), "pods"},
			query{orZero(sum("", increase(ofOperator("crypto_broker_operator_profile_validations_total", `result="refused"`), "5m"))), "profiles"})).
		WithRow(row("Records")).
		WithPanel(areas("Records written by workload", "none", 8, "Audit records that brokers wrote each second.",
			query{"topk(20, " + sum("namespace, workload", rate(records("written"))) + ")", "{{namespace}} {{workload}}"})).
		WithPanel(lines("Records lost by pod", "none", 8, "Audit records that brokers lost in five minutes. Calls whose record was lost were answered, unless their profile requires the record.",
			query{"topk(20, " + sum("namespace, pod", increase(records("lost"), "5m")) + ")", "{{namespace}} {{pod}}"})).
		WithPanel(lines("Records of the operator", "none", 8, "Audit records of the operator in five minutes, by result.",
			query{sum("result", increase(ofOperator("crypto_broker_operator_audit_records_total"), "5m")), "{{result}}"})).
		WithRow(row("Changes")).
		WithPanel(lines("Changes of sets by workload", "none", 8, "Sets of profiles that brokers loaded in five minutes.",
			query{sum("namespace, workload", increase(ofBrokers("crypto_broker_profiles_reloads_total", `result="loaded"`), "5m")), "{{namespace}} {{workload}}"})).
		WithPanel(lines("Refused sets by reason", "none", 8, "Sets of profiles that brokers found in five minutes and refused: not readable, not signed by a key that the broker trusts, older than one that was served, or not kept for a restart.",
			query{sum("reason", increase(ofBrokers("crypto_broker_profiles_rejections_total"), "5m")), "{{reason}}"})).
		WithPanel(lines("Weaker profiles and new signing keys", "none", 8, "Profiles that became weaker in a day because somebody with the right to do so allowed it, and signing keys that the operator made in the place of another.",
			query{sum("", increase(ofOperator("crypto_broker_operator_profiles_weakened_total"), "1d")), "weaker profiles"},
			query{sum("", increase(ofOperator("crypto_broker_operator_signing_key_rotations_total"), "1d")), "new signing keys"}))
}
