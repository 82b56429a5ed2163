// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// verdict is a target and the measured value.
type verdict struct {
	about, wanted, found string
	met                  bool
}

// The targets.
const (
	largeTarget   = 5 * time.Second  // 1,000 pods
	clusterTarget = 60 * time.Second // 10,000 pods
	memoryTarget  = 200 << 20        // bytes, resident
	// factor is the allowed ratio of the cost for each pod between a small and a large change, or between runs with and without
	// unrelated objects.
	factor = 2.0
)

// judge compares the results with the targets.
func (r *results) judge() (all []verdict) {
	add := func(about, wanted, found string, met bool) {
		all = append(all, verdict{about, wanted, found, met})
	}
	for _, each := range []struct {
		id     stepID
		target time.Duration
	}{{stepLarge, largeTarget}, {stepCluster, clusterTarget}, {stepClusterAmong, clusterTarget}} {
		if m := r.step(each.id); m != nil {
			wanted := "≤ " + seconds(each.target)
			add(m.about()+": the last pod is annotated", wanted, seconds(m.last), m.last <= each.target)
			add(m.about()+": the last broker serves the set, with the kubelet's time", wanted, seconds(m.served), m.served <= each.target)
		}
	}
	most := &r.steps[0]
	for i := range r.steps {
		if r.steps[i].peak > most.peak {
			most = &r.steps[i]
		}
	}
	add("resident memory of the operator, at most (in the step: "+most.about()+")", "≤ "+measurement.Mebibytes(memoryTarget), measurement.Mebibytes(most.peak), most.peak <= memoryTarget)
	for _, id := range []stepID{stepIdle, stepIdleAmong} {
		if m := r.step(id); m != nil {
			add(m.about()+": requests beyond leases and watches", "0", fmt.Sprint(m.unexpected()), m.unexpected() == 0)
		}
	}
	small, large, cluster := r.step(stepSmall), r.step(stepLarge), r.step(stepCluster)
	if cluster == nil {
		return all // the run was ended before
	}
	wanted := fmt.Sprintf("≤ %g", factor)
	compare := func(about string, a, b float64) {
		if a > 0 {
			add(about, wanted, fmt.Sprintf("%.2f", b/a), b/a <= factor)
		}
	}
	compare(fmt.Sprintf("requests for each pod: %s pods, over %s pods", measurement.Thousands(cluster.pods), measurement.Thousands(large.pods)), large.perPod(), cluster.perPod())
	compare(fmt.Sprintf("processor time of the operator for each pod: %s pods, over %s pods", measurement.Thousands(cluster.pods), measurement.Thousands(large.pods)), large.cpuPerPod(), cluster.cpuPerPod())
	if among := r.step(stepSmallAmong); among != nil {
		compare(fmt.Sprintf("requests of a change of %d pods: with %s more namespaces, over without", small.pods, measurement.Thousands(r.options.moreNamespaces)), small.perPod(), among.perPod())
		compare("the same, bytes written by etcd", float64(small.stored.written), float64(among.stored.written))
	}
	return all
}

// perPod returns the number of writing requests that the operator made for each pod.
func (m *result) perPod() float64 {
	return float64(m.requestsOf(kindSets, kindRecord, kindPods, kindStatuses, kindEvents, kindOther)) / float64(m.pods)
}

func (m *result) cpuPerPod() float64 { return m.operator.Seconds() / float64(m.pods) }

// about names the step with its pods.
func (m *result) about() string {
	if m.pods == 0 {
		return m.name
	}
	return fmt.Sprintf("%s, %s pods", m.name, measurement.Thousands(m.pods))
}
