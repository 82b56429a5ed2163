// SPDX-License-Identifier: Apache-2.0

// Package uses asks the brokers of namespaces which uses they have counted, many at a time. It
// records which brokers did not answer.
package uses

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/telemetry"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
)

// Unknown is something that could not be found out about a pod.
type Unknown struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Workload is the owner of the pod, as [Workload] names it.
	Workload string `json:"workload"`
	Why      string `json:"why"`
}

// Reasons of [Unknown].
const (
	// TooMany is the reason if a broker has counted calls only by profile and operation.
	TooMany = "the broker has counted more different uses than it can distinguish"
	// NewerBroker is the reason for a use with names that are not known.
	NewerBroker = "the broker's answer has a use that this version does not know"
)

// Summary says how many brokers have answered.
type Summary struct {
	Unknown []Unknown `json:"unknown"`
	// Brokers is the number of brokers that have started, and Answered is the number of brokers
	// that have answered.
	Brokers  int `json:"brokers"`
	Answered int `json:"answered"`
	// Oldest and Youngest are the times at which the first and the last of the answering brokers
	// began to count, or nil.
	Oldest   *time.Time `json:"oldestCount,omitempty"`
	Youngest *time.Time `json:"youngestCount,omitempty"`
}

// Answer has the counts of a broker.
type Answer struct {
	Pod *corev1.Pod
	// Workload is kind/name, or pod/name for a pod without an owner.
	Workload string
	Uses     telemetry.Uses
	asking   *Asking
}

// Unknown records something that is not known of the broker.
func (a *Answer) Unknown(why string) { a.asking.note(a.Pod, a.Workload, why) }

// askers is the number of brokers that are asked at a time. An answer has 1 MiB at most, so this
// bounds the memory, too.
const askers = 32

// progressInterval is the time between two lines about the progress.
const progressInterval = 2 * time.Second

// Asking asks the brokers of namespaces. Start begins it, and Wait ends it.
type Asking struct {
	client kubernetes.Interface
	owners *workload.Owners
	group  *errgroup.Group
	ctx    context.Context // ends when the first error is found
	outer  context.Context
	stop   func()

	mu      sync.Mutex // guards summary, and what take writes to
	summary Summary
}

// Start returns an Asking that writes a line about the progress every two seconds.
func Start(ctx context.Context, client kubernetes.Interface, progress io.Writer) *Asking {
	a := &Asking{client: client, owners: workload.NewOwners(client), outer: ctx, summary: Summary{Unknown: []Unknown{}}}
	a.group, a.ctx = errgroup.WithContext(ctx)
	a.group.SetLimit(askers)
	a.stop = a.tellProgress(progress)
	return a
}

// Namespace asks the brokers of a namespace, or of all namespaces if it is empty. It calls take
// with each answer, one call at a time.
func (a *Asking) Namespace(namespace string, take func(*Answer)) error {
	for next := ""; ; {
		page, err := a.client.CoreV1().Pods(namespace).List(a.ctx, metav1.ListOptions{Limit: installation.Page, Continue: next})
		if err != nil {
			return err
		}
		for i := range page.Items {
			pod := &page.Items[i]
			if injected.Broker(pod) == nil || workload.Ended(pod) || !brokers.Started(pod) {
				continue
			}
			a.mu.Lock()
			a.summary.Brokers++
			a.mu.Unlock()
			a.group.Go(func() error { return a.ask(pod, take) })
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}

// ask asks one broker.
func (a *Asking) ask(pod *corev1.Pod, take func(*Answer)) error {
	owner, err := a.owners.Of(a.ctx, pod)
	if err != nil {
		return err
	}
	answer := &Answer{Pod: pod, Workload: cmp.Or(owner.String(), "pod/"+pod.Name), asking: a}
	answer.Uses, err = brokers.Uses(a.ctx, a.client, pod)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		answer.Unknown(err.Error())
		return a.ctx.Err()
	}
	s, since := &a.summary, answer.Uses.Since
	s.Answered++
	if s.Oldest == nil || since.Before(*s.Oldest) {
		s.Oldest = &since
	}
	if s.Youngest == nil || since.After(*s.Youngest) {
		s.Youngest = &since
	}
	take(answer)
	return nil
}

// note adds something that is not known, once for each pod. The caller has locked a.mu.
func (a *Asking) note(pod *corev1.Pod, workload, why string) {
	u := Unknown{pod.Namespace, pod.Name, workload, why}
	if n := len(a.summary.Unknown); n == 0 || a.summary.Unknown[n-1] != u {
		a.summary.Unknown = append(a.summary.Unknown, u)
	}
}

// Wait waits until all brokers have been asked, and returns the summary. failed is an error that
// has ended this early, or nil.
func (a *Asking) Wait(failed error) (Summary, error) {
	err := errors.Join(failed, a.group.Wait(), a.outer.Err())
	a.stop()
	if err != nil {
		return Summary{}, err
	}
	slices.SortFunc(a.summary.Unknown, func(a, b Unknown) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Why, b.Why))
	})
	return a.summary, nil
}

// tellProgress writes how many brokers have answered, every two seconds, until the returned
// function is called.
func (a *Asking) tellProgress(w io.Writer) (stop func()) {
	done := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() {
		ticks := time.NewTicker(progressInterval)
		defer ticks.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticks.C:
				a.mu.Lock()
				answered, found := a.summary.Answered, a.summary.Brokers
				a.mu.Unlock()
				fmt.Fprintf(w, "note: %d of %d brokers found so far have answered\n", answered, found)
			}
		}
	})
	return func() {
		close(done)
		reporter.Wait()
	}
}
