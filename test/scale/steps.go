// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
	"github.com/crypto-broker/crypto-broker-operator/test/runner"
)

// algorithms are the two algorithms of a changed profile, in turns. Neither is weaker than the other one.
var algorithms = []string{"sha3-512", "sha-512"}

// changes has the times of changes in order, by namespace. The key "" is for changes in every namespace.
type changes map[string][]time.Time

// before returns the last change of a namespace before a time, zero if there was none.
func (c changes) before(namespace string, end time.Time) (last time.Time) {
	for _, name := range []string{namespace, ""} {
		for _, at := range c[name] {
			if at.Before(end) && at.After(last) {
				last = at
			}
		}
	}
	return last
}

// last returns the last of all changes, and the given time if there was none.
func (c changes) last(begin time.Time) time.Time {
	for _, times := range c {
		for _, at := range times {
			if at.After(begin) {
				begin = at
			}
		}
	}
	return begin
}

// runAll runs all steps in order.
func (b *bench) runAll(ctx context.Context) error {
	if err := b.fillProfiles(ctx); err != nil {
		return err
	}
	o, all := b.options, sizes(b.options.pods, b.options.namespaces)
	everywhere := client.ObjectKey{Name: clusterProfile}
	first := client.ObjectKey{Namespace: namespaceName(0), Name: namespaceProfile}
	second := client.ObjectKey{Namespace: namespaceName(1), Name: namespaceProfile}
	last := client.ObjectKey{Namespace: namespaceName(o.namespaces - 1), Name: namespaceProfile}
	bulk := client.ObjectKey{Namespace: last.Namespace, Name: bulkName(0)}

	steps := []step{
		{id: stepPods, name: measurement.Thousands(o.pods) + " pods are created", change: b.filling, done: b.allConfirmed},
		{id: stepLeader, name: "a new leader begins", change: b.restart, done: b.allConfirmed},
		{id: stepSmall, name: "one profile changes", pods: all[1], change: b.change(second), done: b.propagated(second)},
		{id: stepLarge, name: "one profile changes", pods: all[0], change: b.change(first), done: b.propagated(first)},
		{id: stepCluster, name: "one ClusterCryptoProfile changes", pods: o.pods, change: b.change(everywhere), done: b.propagated(everywhere)},
	}
	if o.changes > 0 {
		row, pods := b.row(all)
		steps = append(steps, step{id: stepRow, name: fmt.Sprintf("%d profiles change in %s", o.changes, o.during), pods: pods, change: b.changesInARow(row), done: b.propagated(row...)})
	}
	steps = append(steps, step{id: stepIdle, name: "nothing changes for " + o.idle.String(), change: b.idle(o.idle)})
	if o.moreNamespaces > 0 {
		steps = append(steps,
			step{id: stepNamespaces, name: measurement.Thousands(o.moreNamespaces) + " namespaces are created", change: b.moreNamespaces, done: b.haveSets(o.namespaces + o.moreNamespaces)},
			step{id: stepSmallAmong, name: "one profile changes among them", pods: all[1], change: b.change(second), done: b.propagated(second)},
			step{id: stepClusterAmong, name: "one ClusterCryptoProfile changes in all of them", pods: o.pods, change: b.change(everywhere), done: b.propagated(everywhere)})
	}
	if o.profiles > 0 {
		steps = append(steps,
			step{id: stepProfiles, name: measurement.Thousands(o.profiles) + " profiles are created in a namespace", pods: all[o.namespaces-1], change: b.moreProfiles, done: b.propagated(b.bulk()...)},
			step{id: stepProfileAmong, name: "one of them changes", pods: all[o.namespaces-1], change: b.change(bulk), done: b.propagated(bulk)},
			step{id: stepIdleAmong, name: "nothing changes for " + min(o.idle, time.Minute).String(), change: b.idle(min(o.idle, time.Minute))})
	}
	for _, s := range steps {
		if err := b.do(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return b.annotateBare(ctx)
}

// haveSets reports whether so many namespaces of this program have a set.
func (b *bench) haveSets(count int) func(context.Context) error {
	return func(context.Context) error {
		if sets := b.nodes.haveSets(); sets < count {
			return fmt.Errorf("%d of %d namespaces have a set", sets, count)
		}
		return nil
	}
}

func (b *bench) filling(ctx context.Context) (changes, error) { return nil, b.fillPods(ctx) }

// restart replaces the operator, whose caches and memory are empty then.
func (b *bench) restart(ctx context.Context) (changes, error) {
	return nil, errors.Join(b.operator.stop(), b.operator.start(ctx))
}

// allConfirmed reports whether each broker has confirmed its set to the operator. The request for the metrics costs the operator
// some milliseconds, so it is made rarely.
func (b *bench) allConfirmed(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	confirmed, err := b.confirmed(ctx)
	if err == nil && confirmed < b.options.pods {
		err = fmt.Errorf("the operator has heard from %d of %d brokers", confirmed, b.options.pods)
	}
	return err
}

// change changes a profile.
func (b *bench) change(name client.ObjectKey) func(context.Context) (changes, error) {
	return func(ctx context.Context) (changes, error) {
		begin := time.Now()
		return changes{name.Namespace: {begin}}, b.changeNow(ctx, name)
	}
}

func (b *bench) changeNow(ctx context.Context, name client.ObjectKey) error {
	b.algorithm[name]++
	patch := fmt.Sprintf(`{"spec":{"api":{"hashData":{"hashAlg":%q}}}}`, algorithms[b.algorithm[name]%len(algorithms)])
	return b.objects.Patch(ctx, profileNamed(name), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// profileNamed returns an empty object for a profile.
func profileNamed(name client.ObjectKey) client.Object {
	if name.Namespace == "" {
		return &v1alpha1.ClusterCryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: name.Name}}
	}
	return &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
}

// propagated reports whether the statuses of profiles say that all brokers serve them.
func (b *bench) propagated(names ...client.ObjectKey) func(context.Context) error {
	return func(ctx context.Context) error {
		for len(names) > 0 {
			object := profileNamed(names[0])
			if err := b.objects.Get(ctx, names[0], object); err != nil {
				return err
			}
			var conditions []metav1.Condition
			switch p := object.(type) {
			case *v1alpha1.CryptoProfile:
				conditions = p.Status.Conditions
			case *v1alpha1.ClusterCryptoProfile:
				conditions = p.Status.Conditions
			}
			c := meta.FindStatusCondition(conditions, v1alpha1.ConditionPropagated)
			if c == nil || c.ObservedGeneration != object.GetGeneration() || c.Status != metav1.ConditionTrue {
				return fmt.Errorf("the status of %s does not say that it is propagated", names[0])
			}
			names = names[1:] // reported only once
		}
		return nil
	}
}

// row returns the profiles that change one after the other, and how many pods get another set by these changes. It leaves out the
// first namespace, which is large.
func (b *bench) row(sizes []int) (row []client.ObjectKey, pods int) {
	for i := range b.options.changes {
		at := 1 + i%(len(sizes)-1)
		row = append(row, client.ObjectKey{Namespace: namespaceName(at), Name: namespaceProfile})
		if i < len(sizes)-1 {
			pods += sizes[at]
		}
	}
	return row, pods
}

// changesInARow changes profiles one after the other, at equal distances.
func (b *bench) changesInARow(row []client.ObjectKey) func(context.Context) (changes, error) {
	return func(ctx context.Context) (changes, error) {
		made := changes{}
		ticker := time.NewTicker(max(b.options.during/time.Duration(len(row)), time.Millisecond))
		defer ticker.Stop()
		for i, name := range row {
			if i%20 == 0 {
				runner.Progress("changes %d of %d profiles", i, len(row))
			}
			made[name.Namespace] = append(made[name.Namespace], time.Now())
			if err := b.changeNow(ctx, name); err != nil {
				return nil, err
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-ticker.C:
			}
		}
		return made, nil
	}
}

// idle waits.
func (b *bench) idle(duration time.Duration) func(context.Context) (changes, error) {
	return func(ctx context.Context) (changes, error) {
		end := time.After(duration)
		ticker := time.NewTicker(30 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-end:
				return nil, nil
			case <-ticker.C:
				runner.Progress("waits for %s in all", duration)
			}
		}
	}
}

func (b *bench) moreNamespaces(ctx context.Context) (changes, error) {
	return nil, forEach(ctx, "creates namespaces", b.options.moreNamespaces, func(ctx context.Context, i int) error {
		return b.objects.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf(morePrefix+"%05d", i)}})
	})
}

func bulkName(i int) string { return fmt.Sprintf("bulk-%04d", i) }

// bulk returns the names of the profiles that moreProfiles creates.
func (b *bench) bulk() (names []client.ObjectKey) {
	for i := range b.options.profiles {
		names = append(names, client.ObjectKey{Namespace: namespaceName(b.options.namespaces - 1), Name: bulkName(i)})
	}
	return names
}

func (b *bench) moreProfiles(ctx context.Context) (changes, error) {
	names := b.bulk()
	begin := time.Now()
	return changes{names[0].Namespace: {begin}}, forEach(ctx, "creates profiles", len(names), func(ctx context.Context, i int) error {
		return b.objects.Create(ctx, profileIn(names[i].Namespace, names[i].Name))
	})
}
