// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
)

// problem returns what is wrong with the broker of a pod. It returns false if nothing is wrong.
func problem(r brokers.Row) (what string, tone Tone, is bool) {
	switch {
	case r.Broker == brokers.Missing:
		return "Broker missing", Bad, true
	case r.Set == brokers.SetRefused:
		return "Set refused", Bad, true
	case r.Set == brokers.SetPartial:
		return "Set served in part", Bad, true
	case r.Set == brokers.SetBehind:
		return "Behind", Warn, true
	case r.Set == brokers.SetStarting:
		return "Not started", Warn, true
	case r.Broker == brokers.Outdated:
		return "Broker outdated", Warn, true
	case r.Set == brokers.SetUnknown:
		return "Could not be asked", Warn, true
	default:
		return "", "", false
	}
}

// mend returns a command that solves the problem of a pod's broker, or that explains it, followed
// by flags. It quotes the name of the owner for the shell, because the API server has not checked
// the name that a pod claims.
func mend(r brokers.Row, flags string) string {
	restart := r.Broker == brokers.Missing || r.Broker == brokers.Outdated || r.Reason == string(directory.SignatureRejected)
	if w, can := r.Owner.Workload(); can && restart && len(validation.IsDNS1123Subdomain(w.Name)) == 0 {
		return text.Plugin + " restart " + w.String() + " -n " + r.Namespace + flags
	}
	return text.Plugin + " explain " + r.Pod + " -n " + r.Namespace + flags
}

// problemsOf returns which pods need attention, by workload and reason, the worst first.
func problemsOf(rows []brokers.Row, flags string) (all []Problem) {
	type group struct{ namespace, workload, problem string }
	index := map[group]int{}
	for _, r := range rows {
		what, tone, is := problem(r)
		if !is {
			continue
		}
		key := group{r.Namespace, workloadOf(r), what}
		i, known := index[key]
		if !known {
			i = len(all)
			index[key] = i
			all = append(all, Problem{
				Namespace: r.Namespace, Workload: cut(key.workload), Problem: what, Tone: tone, Example: r.Pod, Why: cut(r.Note), Command: mend(r, flags),
			})
		}
		all[i].Pods++
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return cmp.Or(worst(a.Tone, b.Tone), cmp.Compare(b.Pods, a.Pods)) })
	return all
}

// countPods counts pods by their brokers.
func countPods(rows []brokers.Row, counts *Counts) {
	namespaces := map[string]bool{}
	for _, r := range rows {
		if r.Broker == brokers.Missing {
			counts.Missing++
		} else {
			counts.Pods++
			namespaces[r.Namespace] = true
		}
		if r.Broker == brokers.Outdated {
			counts.Outdated++
		}
		if _, _, is := problem(r); is {
			counts.Troubled++
		}
	}
	counts.Namespaces = len(namespaces)
}
