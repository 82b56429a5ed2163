// SPDX-License-Identifier: Apache-2.0

// Package whatif finds out which workloads used what profiles would no longer offer after a
// change. It renders the change with the code of the operator, asks the brokers of the
// namespaces which uses they have counted, and asks the compiled profiles what becomes of
// each of these uses. It changes nothing.
package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/effective"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
)

// Finding is a use that the change does not leave as it is, by the pods of one workload.
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
	// Why says why the calls are refused, or what they get instead.
	Why string `json:"why"`
	// Pods is how many pods made the calls.
	Pods  int    `json:"pods"`
	Calls uint64 `json:"calls"`
	// Since is when the first of these brokers began to count, and Last when the last call
	// ended.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
}

// key is what findings that are added up have in common.
func (f *Finding) key() string {
	return fmt.Sprintf("%q", []string{f.Namespace, f.Workload, f.Container, f.Profile, f.Operation, f.Algorithm, strings.Join(f.Keys, ", "), f.Why})
}

// Unknown is something that could not be found out about a pod.
type Unknown struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Why       string `json:"why"`
}

// Report is the answer.
type Report struct {
	Findings []Finding `json:"findings"`
	Unknown  []Unknown `json:"unknown"`
	// Namespaces is in how many namespaces the change changes what brokers serve.
	Namespaces int `json:"namespaces"`
	// Brokers is how many brokers have started there, and Answered how many of them have
	// answered.
	Brokers  int `json:"brokers"`
	Answered int `json:"answered"`
	// Oldest and Youngest are when the first and the last of the brokers that answered began
	// to count; nil if none has.
	Oldest   *time.Time `json:"oldestCount,omitempty"`
	Youngest *time.Time `json:"youngestCount,omitempty"`
	// Notes are about profiles that would not count.
	Notes []string `json:"notes,omitempty"`
}

// askers is how many brokers are asked at a time.
const askers = 16

// progressInterval is the time between two lines about the progress.
const progressInterval = 2 * time.Second

// Asker finds out what a change breaks.
type Asker struct {
	Client kubernetes.Interface
	// Progress gets a line every two seconds.
	Progress io.Writer

	mu       sync.Mutex // guards all fields below
	report   Report
	findings map[string]*Finding
	owners   *workload.Owners
}

// Ask returns what becomes of the calls that brokers have counted, if the profiles are
// applied.
func (a *Asker) Ask(ctx context.Context, profiles *Profiles) (*Report, error) {
	a.findings, a.owners = map[string]*Finding{}, workload.NewOwners(a.Client)
	a.report = Report{Findings: []Finding{}, Unknown: []Unknown{}}
	defer a.tellProgress()()
	sets, err := a.sets(ctx, profiles)
	if err != nil {
		return nil, err
	}
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(askers)
	now := metav1.Now()
	for _, set := range sets {
		changed, notes := profiles.in(set, now)
		a.mu.Lock()
		a.report.Notes = append(a.report.Notes, notes...)
		if changed != nil {
			a.report.Namespaces++
		}
		a.mu.Unlock()
		if changed == nil {
			continue
		}
		if err := a.askNamespace(asking, group, changed); err != nil {
			return nil, errors.Join(err, group.Wait())
		}
	}
	if err := errors.Join(group.Wait(), ctx.Err()); err != nil {
		return nil, err
	}
	return a.sorted(), nil
}

// sets returns what is served now where the profiles may change it: in all namespaces if
// there is a ClusterCryptoProfile.
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

// askNamespace has the brokers of a namespace asked.
func (a *Asker) askNamespace(ctx context.Context, group *errgroup.Group, changed *change) error {
	plain := changed.compile()
	approved := changed.compile(profile.RequireFIPS())
	for next := ""; ; {
		page, err := a.Client.CoreV1().Pods(changed.namespace).List(ctx, metav1.ListOptions{Limit: installation.Page, Continue: next})
		if err != nil {
			return err
		}
		for i := range page.Items {
			pod := &page.Items[i]
			broker := injected.Broker(pod)
			if broker == nil || workload.Ended(pod) || !brokers.Started(pod) {
				continue
			}
			compiled := plain
			if slices.Contains(broker.Args, contract.Switch(contract.RequireFIPSFlag)) {
				compiled = approved
			}
			a.mu.Lock()
			a.report.Brokers++
			a.mu.Unlock()
			group.Go(func() error { return a.askBroker(ctx, pod, changed, compiled) })
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}

// askBroker asks one broker, and adds up what it has counted.
func (a *Asker) askBroker(ctx context.Context, pod *corev1.Pod, changed *change, compiled versions) error {
	counted, err := brokers.Uses(ctx, a.Client, pod)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.unknown(pod, err.Error())
		return ctx.Err()
	}
	r, since := &a.report, counted.Since
	r.Answered++
	if r.Oldest == nil || since.Before(*r.Oldest) {
		r.Oldest = &since
	}
	if r.Youngest == nil || since.After(*r.Youngest) {
		r.Youngest = &since
	}
	for _, other := range counted.Other {
		if other.Profile == "" || find(changed.before, other.Profile) != nil {
			a.unknown(pod, "the broker has counted more different uses than it tells apart")
		}
	}
	seen := map[string]bool{} // findings of this pod
	for _, row := range counted.Uses {
		before := compiled.before[row.Profile]
		if before == nil {
			continue // the profile does not change
		}
		use, err := row.Use()
		if err != nil {
			a.unknown(pod, "the broker's answer has a use that this version does not know")
			continue
		}
		if effect, _ := before.Effect(use); effect != "" {
			continue // it is no longer offered already
		}
		effect, why := compiled.after[row.Profile].Effect(use)
		if effect == "" {
			if what := changed.uncounted(row.Profile, row.Operation); what != "" {
				a.unknown(pod, fmt.Sprintf("brokers do not count %s in the profile %q", what, row.Profile))
			}
			continue
		}
		if err := a.add(ctx, pod, row, use, effect, why, seen); err != nil {
			return err
		}
	}
	return nil
}

// add adds the calls of a use to its finding. Whoever calls add has locked a.mu.
func (a *Asker) add(ctx context.Context, pod *corev1.Pod, row telemetry.CountedUse, use profile.Use, effect profile.Effect, why string, seen map[string]bool) error {
	owner, err := a.owners.Of(ctx, pod)
	if err != nil {
		return err
	}
	f := &Finding{
		Namespace: pod.Namespace, Workload: cmp.Or(owner.String(), "pod/"+pod.Name), Container: row.Container, Profile: row.Profile,
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
	return nil
}

// unknown adds something that is not known, once for each pod. Whoever calls unknown has
// locked a.mu.
func (a *Asker) unknown(pod *corev1.Pod, why string) {
	u := Unknown{pod.Namespace, pod.Name, why}
	if n := len(a.report.Unknown); n == 0 || a.report.Unknown[n-1] != u {
		a.report.Unknown = append(a.report.Unknown, u)
	}
}

func (a *Asker) sorted() *Report {
	r := &a.report
	for _, f := range a.findings {
		r.Findings = append(r.Findings, *f)
	}
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload), -cmp.Compare(a.Calls, b.Calls), cmp.Compare(a.key(), b.key()))
	})
	slices.SortFunc(r.Unknown, func(a, b Unknown) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Why, b.Why))
	})
	return r
}

// tellProgress writes how many brokers have been asked, every two seconds, until the function
// that it returns is called.
func (a *Asker) tellProgress() (stop func()) {
	done := make(chan struct{})
	var told sync.WaitGroup
	told.Go(func() {
		ticks := time.NewTicker(progressInterval)
		defer ticks.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticks.C:
				a.mu.Lock()
				answered, found := a.report.Answered, a.report.Brokers
				a.mu.Unlock()
				fmt.Fprintf(a.Progress, "note: %d of %d brokers found so far have answered\n", answered, found)
			}
		}
	})
	return func() {
		close(done)
		told.Wait()
	}
}
