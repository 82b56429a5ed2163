// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// BenchmarkPropagation measures the time from writing a changed profile to the first reply in which each of five
// applications under load, in two namespaces with a set of 100 profiles, sees the new algorithm.
//
//	go test -tags e2e -run '^$' -bench Propagation -benchtime 100x -timeout 40m ./test/e2e
func BenchmarkPropagation(b *testing.B) {
	benchmarkPropagation(b, "", func() {})
}

// BenchmarkPropagationBesideNewProfiles measures the same while another namespace with a pod gets 1,000 profiles, loses
// them, and gets them again.
func BenchmarkPropagationBesideNewProfiles(b *testing.B) {
	const profiles = 1000
	namespace := newNamespace(b, nil)
	createProfile(b, namespace, "sha-256")
	createPod(b, appPod(namespace, inject("true"), load))
	var created int
	ctx, stop := context.WithCancel(context.Background())
	var group errgroup.Group
	group.Go(func() error {
		for ; ctx.Err() == nil; created++ {
			profile := &v1alpha1.CryptoProfile{}
			profile.Name, profile.Namespace = fmt.Sprintf("other-%d", created%profiles), namespace
			profile.Spec = hashing(fmt.Sprintf("Other-%d", created%profiles), "sha-256")
			if created > 0 && created%profiles == 0 {
				if err := shared.client.DeleteAllOf(ctx, profile, client.InNamespace(namespace), client.HasLabels{"other"}); err != nil {
					return err
				}
			}
			profile.Labels = map[string]string{"other": ""}
			if err := shared.client.Create(ctx, profile); err != nil {
				return err
			}
		}
		return nil
	})
	benchmarkPropagation(b, " beside a namespace that gets 1,000 profiles", func() {
		stop()
		if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			b.Errorf("creating other profiles: %v", err)
		}
		fmt.Printf("profiles created in the other namespace: %d\n", created)
	})
}

// benchmarkPropagation measures changes. It calls done after the last one.
func benchmarkPropagation(b *testing.B, beside string, done func()) {
	f := newFleet(b)
	var pods, slowest []time.Duration
	for b.Loop() {
		// A kubelet looks at its pods once a second, and the last change became visible at such a moment. Without a random pause,
		// each change would wait for a whole second.
		<-time.After(rand.N(time.Second))
		took := f.change(b, 2*time.Minute)
		pods = append(pods, took...)
		slowest = append(slowest, slices.Max(took))
	}
	done()
	var calls, failed, repeated int64
	for i := range f.pods {
		found := mustStats(b, &f.pods[i])
		calls, failed, repeated = calls+found.Calls, failed+found.Failed, repeated+found.Retries
	}
	fmt.Printf("\n%s, %s\n", measurement.Machine(), time.Now().Format("2 January 2006"))
	fmt.Printf("%d changes of one of 100 profiles, %d pods in 2 namespaces%s, %d calls in all\n", len(slowest), len(f.pods), beside, calls)
	fmt.Printf("\n%-28s %8s %8s %8s %8s\n", "from apply to", "median", "p90", "p99", "max")
	for _, row := range []struct {
		name  string
		times []time.Duration
	}{{"served in a pod", pods}, {"served in the last pod", slowest}} {
		slices.Sort(row.times)
		fmt.Printf("%-28s %6.2f s %6.2f s %6.2f s %6.2f s\n", row.name, quantile(row.times, 0.5), quantile(row.times, 0.9),
			quantile(row.times, 0.99), quantile(row.times, 1))
	}
	fmt.Printf("\ncalls failed: %d, calls repeated: %d\n", failed, repeated)
	b.ReportMetric(quantile(pods, 0.5), "s-median")
	b.ReportMetric(quantile(pods, 0.99), "s-p99")
	b.ReportMetric(float64(failed), "failed-calls")
	b.ReportMetric(0, "ns/op") // the default metric would mix the changes and the waiting between them
	if failed > 0 {
		b.Errorf("%d of %d calls failed, expected none", failed, calls)
	}
}

// quantile is the nearest-rank quantile of sorted times, in seconds.
func quantile(sorted []time.Duration, q float64) float64 {
	rank := int(q*float64(len(sorted))+0.9999999) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)].Seconds()
}
