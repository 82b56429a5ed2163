// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/distribute"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// brokerLog is the command that shows the log of a broker.
const brokerLog = "kubectl logs POD -c " + contract.BrokerContainer

// degraded returns the condition Degraded for a profile with this verdict in sets with these
// numbers of brokers. If there are several problems, it names the worst.
func (c conditions) degraded(s distribute.Summary, verdict render.Verdict) metav1.Condition {
	wrong := func(reason, message string, args ...any) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: reason, Message: fmt.Sprintf(message, args...)}
	}
	of := func(n int) string { return fmt.Sprintf("%d of %s", n, plural(s.Pods, "broker", "brokers")) }
	switch {
	case !verdict.Accepted && verdict.Reason == v1alpha1.ReasonNotWritten:
		return wrong(v1alpha1.ReasonNotWritten, "%s", verdict.Message)
	case !verdict.Accepted:
		return wrong(v1alpha1.ReasonNotAccepted, "The profile is not served: see the condition Accepted.")
	case verdict.Held != "":
		return wrong(v1alpha1.ReasonProfilesHeld, "%s", verdict.Held)
	case s.Old > 0:
		return wrong(v1alpha1.ReasonBrokersTooOld,
			"%s %s not take the set as it is, and %s made by another version of the operator, or with other settings, than a new pod's. Restart the pods' workloads; kubectl crypto-broker outdated lists them.",
			of(s.Old), choose(s.Old, "does", "do"), choose(s.Old, "was", "were"))
	case s.Refusing > 0:
		return wrong(v1alpha1.ReasonSetRefused, "%s %s the set and %s an older one. The broker's log says why: %s.",
			of(s.Refusing), choose(s.Refusing, "refuses", "refuse"), choose(s.Refusing, "serves", "serve"), brokerLog)
	case s.Waiting > 0:
		return wrong(v1alpha1.ReasonBrokersWithoutSet, "%s %s no set, so %s not start. The events of the pod and the broker's log say why: %s.",
			of(s.Waiting), choose(s.Waiting, "has", "have"), choose(s.Waiting, "its pod does", "their pods do"), brokerLog)
	case s.Behind > 0:
		return wrong(v1alpha1.ReasonTriesExhausted, "%s %s an older set %s, whose own resync takes up to 90 s. If it lasts longer, see whether the node is ready, and the kubelet's log there.",
			of(s.Behind), choose(s.Behind, "serves", "serve"), c.waited())
	case s.Partial > 0 && !s.WithdrawnSince.IsZero():
		return wrong(v1alpha1.ReasonProfilesRefused, "%s %s the set without some of its profiles. This one was served and is out of service since %s: its callers get FAILED_PRECONDITION with the problem. The broker's log says why: %s.",
			of(s.Partial), choose(s.Partial, "serves", "serve"), s.WithdrawnSince.UTC().Format(time.RFC3339), brokerLog)
	case s.Partial > 0:
		return wrong(v1alpha1.ReasonProfilesRefused, "%s %s the set without some of its profiles, this one or others, whose callers get FAILED_PRECONDITION; one that requires FIPS 140-3 leaves out what is not approved. The broker's log says which and why: %s.",
			of(s.Partial), choose(s.Partial, "serves", "serve"), brokerLog)
	default:
		return metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAsExpected, Message: "Nothing is wrong."}
	}
}
