// SPDX-License-Identifier: Apache-2.0

// Package whatif finds out which calls of workloads a change of profiles would break. It renders
// the change with the code of the operator, asks the brokers of the namespaces which uses they
// have counted, and asks the compiled profiles for the effect on each of these uses. It changes
// nothing.
package whatif

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/effective"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/uses"
)

// Finding is a use, by the pods of one workload, that the change affects.
type Finding struct {
	Namespace string `json:"namespace"`
	// Workload is kind/name, or pod/name for a pod without an owner.
	Workload string `json:"workload"`
	// Container is the caller, empty if all callers share a socket.
	Container string `json:"container,omitempty"`
	Profile   string `json:"profile"`
	Operation string `json:"operation"`
	Algorithm string `json:"algorithm"`
	// Keys are the keys of the calls, such as "RSA 2048".
	Keys   []string       `json:"keys,omitempty"`
	Effect profile.Effect `json:"effect"`
	// Why says why the calls are refused, or how their results change.
	Why string `json:"why"`
	// Pods is the number of pods that made the calls.
	Pods  int    `json:"pods"`
	Calls uint64 `json:"calls"`
	// Since is the time at which the first of these brokers began to count, and Last is the end
	// of the last call.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
}

// key identifies findings that are added up.
func (f *Finding) key() string {
	return fmt.Sprintf("%q", []string{f.Namespace, f.Workload, f.Container, f.Profile, f.Operation, f.Algorithm, strings.Join(f.Keys, ", "), f.Why})
}

// Report is the result.
type Report struct {
	Findings []Finding `json:"findings"`
	// Summary is about the namespaces whose brokers would serve something else.
	uses.Summary
	// Namespaces is the number of these namespaces.
	Namespaces int `json:"namespaces"`
	// Notes are about profiles that would have no effect.
	Notes []string `json:"notes,omitempty"`
}

// Asker finds out what a change breaks.
type Asker struct {
	Client kubernetes.Interface
	// Progress receives a line every two seconds.
	Progress io.Writer

	report   Report
	findings map[string]*Finding
}

// Ask returns the effect of applying the profiles on the calls that brokers have counted.
func (a *Asker) Ask(ctx context.Context, profiles *Profiles) (*Report, error) {
	a.findings, a.report = map[string]*Finding{}, Report{Findings: []Finding{}}
	asking := uses.Start(ctx, a.Client, a.Progress)
	summary, err := asking.Wait(a.askAll(ctx, asking, profiles))
	if err != nil {
		return nil, err
	}
	a.report.Summary = summary
	return a.sorted(), nil
}

// askAll asks the brokers of all namespaces in which something changes.
func (a *Asker) askAll(ctx context.Context, asking *uses.Asking, profiles *Profiles) error {
	sets, err := a.sets(ctx, profiles)
	if err != nil {
		return err
	}
	now := metav1.Now()
	for _, set := range sets {
		changed, notes := profiles.in(set, now)
		a.report.Notes = append(a.report.Notes, notes...)
		if changed == nil {
			continue
		}
		a.report.Namespaces++
		plain := changed.compile()
		approved := changed.compile(profile.RequireFIPS())
		if err := asking.Namespace(changed.namespace, func(answer *uses.Answer) {
			compiled := plain
			if slices.Contains(injected.Broker(answer.Pod).Args, contract.Switch(contract.RequireFIPSFlag)) {
				compiled = approved
			}
			a.take(answer, changed, compiled)
		}); err != nil {
			return err
		}
	}
	return nil
}

// sets returns the current sets of all namespaces that the profiles may change. These are all
// namespaces if there is a ClusterCryptoProfile.
func (a *Asker) sets(ctx context.Context, profiles *Profiles) (sets []*effective.Set, err error) {
	if len(profiles.Cluster) > 0 {
		return effective.ReadAll(ctx, a.Client)
	}
	var namespaces []string
	for i := range profiles.Namespaced {
		namespaces = append(namespaces, profiles.Namespaced[i].Namespace)
	}
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		set, err := effective.Read(ctx, a.Client, namespace)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// take adds up what a broker has counted.
func (a *Asker) take(answer *uses.Answer, changed *change, compiled versions) {
	for _, other := range answer.Uses.Other {
		if other.Profile == "" || find(changed.before, other.Profile) != nil {
			answer.Unknown(uses.TooMany)
		}
	}
	seen := map[string]bool{} // findings of this pod
	for _, row := range answer.Uses.Uses {
		before := compiled.before[row.Profile]
		if before == nil {
			continue // the profile does not change
		}
		use, err := row.Use()
		if err != nil {
			answer.Unknown(uses.NewerBroker)
			continue
		}
		if effect, _ := before.Effect(use); effect != "" {
			continue // the present profile does not offer it either
		}
		effect, why := compiled.after[row.Profile].Effect(use)
		if effect == "" {
			if what := changed.uncounted(row.Profile, row.Operation); what != "" {
				answer.Unknown(fmt.Sprintf("brokers do not count %s in the profile %q", what, row.Profile))
			}
			continue
		}
		a.add(answer, row, use, effect, why, seen)
	}
}

// add adds the calls of a use to its finding.
func (a *Asker) add(answer *uses.Answer, row telemetry.CountedUse, use profile.Use, effect profile.Effect, why string, seen map[string]bool) {
	f := &Finding{
		Namespace: answer.Pod.Namespace, Workload: answer.Workload, Container: row.Container, Profile: row.Profile,
		Operation: row.Operation, Algorithm: row.Algorithm, Effect: effect, Why: why, Since: row.Since,
	}
	for _, key := range use.Keys {
		if key != (profile.UsedKey{}) {
			f.Keys = append(f.Keys, key.String())
		}
	}
	key := f.key()
	if known := a.findings[key]; known != nil {
		f = known
	}
	a.findings[key] = f
	f.Calls += row.Calls
	if row.Since.Before(f.Since) {
		f.Since = row.Since
	}
	if row.Last.After(f.Last) {
		f.Last = row.Last
	}
	if !seen[key] {
		f.Pods++
	}
	seen[key] = true
}

func (a *Asker) sorted() *Report {
	r := &a.report
	for _, f := range a.findings {
		r.Findings = append(r.Findings, *f)
	}
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload), -cmp.Compare(a.Calls, b.Calls), cmp.Compare(a.key(), b.key()))
	})
	return r
}
