// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/statuspatch"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

// fill fills in a status from the answers of the gateways. Each view has the provider.
// operatorNamespace is the namespace of the gateways.
func fill(status *v1alpha1.KeyProviderStatus, object client.Object, spec *v1alpha1.KeyProviderSpec, views []*providerreport.Provider, operatorNamespace string) {
	generation := object.GetGeneration()
	status.ObservedGeneration = generation
	status.Gateways = int32(len(views)) //nolint:gosec // a few
	var open []*providerreport.Provider
	for _, view := range views {
		if view != nil && view.Generation == generation && view.Problem == "" {
			open = append(open, view)
		}
	}
	fillEndpoints(status, addresses(spec), open)
	fillSecretVersion(status, spec, views)
	accepted := acceptedCondition(object, spec, views, operatorNamespace)
	reachable := reachableCondition(status, open)
	if accepted.Status != metav1.ConditionTrue {
		reachable = condition(metav1.ConditionUnknown, v1alpha1.ReasonNotAccepted, "The provider is not open in all key gateways; see the condition Accepted.")
	}
	ready := reachable
	if accepted.Status != metav1.ConditionTrue {
		ready = accepted
	}
	accepted.Type, reachable.Type, ready.Type = v1alpha1.ConditionAccepted, v1alpha1.ConditionReachable, v1alpha1.ConditionReady
	for _, c := range []metav1.Condition{ready, accepted, reachable} {
		statuspatch.SetCondition(&status.Conditions, c, generation)
	}
}

// fillSecretVersion fills in the version of the Secret, once all gateways have the same.
func fillSecretVersion(status *v1alpha1.KeyProviderStatus, spec *v1alpha1.KeyProviderSpec, views []*providerreport.Provider) {
	if spec.Credentials == nil {
		status.SecretVersion = ""
		return
	}
	for i, view := range views {
		if view == nil || view.SecretVersion != views[max(0, i-1)].SecretVersion {
			return
		}
	}
	if len(views) > 0 {
		status.SecretVersion = views[0].SecretVersion
	}
}

func condition(status metav1.ConditionStatus, reason, format string, args ...any) metav1.Condition {
	return metav1.Condition{Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// problems are the problems of a provider. Problems that a person has to solve come first.
var problems = []string{
	providerreport.Invalid, providerreport.InvalidCredentials, providerreport.SecretForbidden, providerreport.SecretNotFound, providerreport.SecretUnreadable,
	providerreport.HeldBack,
}

// acceptedCondition returns the condition Accepted.
func acceptedCondition(object client.Object, spec *v1alpha1.KeyProviderSpec, views []*providerreport.Provider, operatorNamespace string) metav1.Condition {
	if len(views) == 0 {
		return condition(metav1.ConditionUnknown, v1alpha1.ReasonNoGateway,
			"No key gateway has answered the operator for %s. Find out whether they are installed and ready: kubectl get pods -n %s -l %s=%s.",
			patience, operatorNamespace, contract.ComponentLabel, contract.KeyGatewayComponent)
	}
	worst := len(problems)
	var detail string
	late := false
	for _, view := range views {
		if isLate(view, object.GetGeneration()) {
			late = true
			continue
		}
		if place := slices.Index(problems, view.Problem); place >= 0 && place < worst {
			worst, detail = place, view.Detail
		}
	}
	switch {
	case worst < len(problems):
		return closedCondition(problems[worst], detail, object, spec, operatorNamespace)
	case late:
		return condition(metav1.ConditionUnknown, v1alpha1.ReasonNotOpened,
			"A key gateway has not opened generation %d of the provider within %s. Its log may say why.", object.GetGeneration(), patience)
	}
	return condition(metav1.ConditionTrue, v1alpha1.ReasonOpened, "All key gateways have opened the provider.")
}

// isLate reports whether a gateway does not have this generation of the provider yet.
func isLate(view *providerreport.Provider, generation int64) bool {
	return view == nil || view.Generation != generation || view.Problem != "" && !slices.Contains(problems, view.Problem)
}

func closedCondition(problem, detail string, object client.Object, spec *v1alpha1.KeyProviderSpec, operatorNamespace string) metav1.Condition {
	secret := "the Secret"
	if spec.Credentials != nil {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = operatorNamespace
		}
		secret = fmt.Sprintf("the Secret %q in namespace %q", spec.Credentials.SecretRef.Name, namespace)
	}
	switch problem {
	case providerreport.SecretNotFound:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, "A key gateway does not find %s. Create it.", secret)
	case providerreport.SecretForbidden:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonSecretForbidden,
			"A key gateway may not read %s. Give its account the verbs get and watch for this Secret with a Role and a RoleBinding. The gateway tries again after up to two minutes.", secret)
	case providerreport.SecretUnreadable:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonSecretUnreadable, "A key gateway could not read %s, because the API server did not answer it. It tries again.", secret)
	case providerreport.InvalidCredentials:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonInvalidCredentials, "A key gateway cannot use %s: %s.", secret, strings.TrimSuffix(detail, "."))
	}
	return condition(metav1.ConditionFalse, v1alpha1.ReasonInvalid, "A key gateway cannot open the provider: %s.", strings.TrimSuffix(detail, "."))
}

// sentences explain failures.
var sentences = map[pool.Failure]string{
	pool.NameNotFound:          "its name has no address",
	pool.NotConnected:          "the gateway cannot connect to it",
	pool.TimedOut:              "it takes too long to connect or to answer",
	pool.CertificateNotTrusted: "its certificate is not valid for ca.crt and the name of the server",
	pool.CredentialsRefused:    "it refuses the credentials",
	pool.BadReply:              "it closes connections, or says that it cannot serve",
}

// reachableCondition returns the condition Reachable. views are of gateways that have opened the
// provider. A gateway that has contacted no server yet counts only if no other gateway has.
func reachableCondition(status *v1alpha1.KeyProviderStatus, views []*providerreport.Provider) metav1.Condition {
	serves, fails, refused := 0, 0, false
	for _, view := range views {
		switch usable, contacted := usableEndpoints(view); {
		case usable > 0 || len(view.Endpoints) == 0:
			serves++
		case contacted > 0:
			fails++
			refused = refused || slices.ContainsFunc(view.Endpoints, func(e providerreport.Endpoint) bool { return e.Failure == string(pool.CredentialsRefused) })
		}
	}
	failures := failuresOf(status)
	switch {
	case fails > 0 && refused:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonCredentialsRefused, "A key gateway can use no server: %s.", failures)
	case fails > 0:
		return condition(metav1.ConditionFalse, v1alpha1.ReasonUnreachable, "A key gateway can use no server: %s.", failures)
	case serves == 0:
		return condition(metav1.ConditionUnknown, v1alpha1.ReasonNotContacted, "No server was contacted yet.")
	case failures != "":
		return condition(metav1.ConditionTrue, v1alpha1.ReasonSomeUnreachable, "Each key gateway can use a server, but not all: %s.", failures)
	}
	return condition(metav1.ConditionTrue, v1alpha1.ReasonAllReachable, "All key gateways reach the key manager.")
}

// usableEndpoints returns how many endpoints serve a gateway, and how many it has contacted.
func usableEndpoints(view *providerreport.Provider) (usable, contacted int) {
	for _, e := range view.Endpoints {
		if e.Reached == nil {
			continue
		}
		contacted++
		if *e.Reached && e.Failure == "" {
			usable++
		}
	}
	return usable, contacted
}

// failuresOf lists the endpoints that fail, and why.
func failuresOf(status *v1alpha1.KeyProviderStatus) string {
	var all []string
	for _, e := range status.Endpoints {
		if e.Failure == "" {
			continue
		}
		says, known := sentences[pool.Failure(e.Failure)]
		if !known {
			says = "it fails with " + e.Failure
		}
		all = append(all, e.Address+": "+says)
	}
	return strings.Join(all, "; ")
}
