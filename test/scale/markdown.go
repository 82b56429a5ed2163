// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/test/measurement"
)

// introduction explains the report. It has no numbers of a run.
const introduction = `# The operator with many pods

What a change costs the operator and the API server in a cluster with many pods. This page is what the command wrote:

` + "```sh\nmake bench-operator\n```" + `

The API server and etcd are real and compiled as releases are, and etcd writes to the disk. The operator is one replica of the chart, with
the chart's arguments, ` + "`GOMEMLIMIT`" + `, memory limit and leader election. It has the token of its ServiceAccount, and so only the rights of the chart.
Its webhooks validate each profile and inject each broker. Nobody runs the pods. For each pod the measurement writes the status that a kubelet
would write, and answers on the broker's status port, at an address of the pod's own. Such a broker serves a new set 0.2 to 1.1 s
after the operator annotated its pod, as with a kubelet, or a minute after the set was written. So the times have no kubelets and no brokers in
them, which share these processors here, but have nodes of their own in a cluster.

All programs share the machine: the operator, the API server, etcd, and the measurement itself, which watches all pods as the kubelets would.
`

// targets explains the times among the targets.
const targets = `
An annotation is the operator's work, and the API server bounds it. What a kubelet takes after the annotation of its pod is simulated here, and is
up to 1.1 s of the time until the last broker serves the set. Both times are from the change on.
`

// columns explains the tables.
const columns = `
* **ConfigMaps** are the sets that were written, **record** the writes of the ConfigMap that records what namespaces were given, and **pods** the
  annotations that wake kubelets. **Polls** are questions to brokers about the set that they serve. Each broker is asked every 3 to 7 minutes,
  also while nothing changes.
* **First**, **median** and **last** are the times from a change until the operator annotated a pod. **Served** is the time from the last
  change until the last broker served the set, and **status** until the status of the profile said so.
* **Processor time** is until then. The **measurement** is what plays the kubelets and the brokers. **Resident** is the peak in the step.
* **Written** is what went to etcd's log: each new version of each object once. **Held** is the growth of the part of the database that is
  in use. It has old versions, too: the API server has etcd drop those that are older than 5 to 10 minutes, so it can be less than zero.
`

// markdown renders the results as docs/reports/operator.md.
func (r *results) markdown() string {
	var d strings.Builder
	d.WriteString(introduction)
	limited := "in a control group with the chart's memory limit"
	if !r.limited {
		limited = "without a control group, so that only `GOMEMLIMIT` bounds its memory"
	}
	pods := int64(max(r.options.pods, 1))
	fmt.Fprintf(&d, "\n`%s`, %s, load %s at the start, %s, Kubernetes %s, operator %s %s; %s in all; %s.\nA pod has %s on average, %s of them the snapshot of the profiles and its signature.\n",
		r.options.command, r.machine, r.load, r.began.UTC().Format("2 January 2006 15:04 MST"), r.kubernetes, r.version, limited, r.took.Round(time.Second), r.errorsText(),
		kibibytes(r.podBytes.Load()/pods), kibibytes(r.snapshots.Load()/pods))
	d.WriteString("\n## Targets\n\n| target | wanted | found | verdict |\n|---|---|---|---|\n")
	for _, v := range r.judge() {
		said := "met"
		if !v.met {
			said = "**missed**"
		}
		fmt.Fprintf(&d, "| %s | %s | %s | %s |\n", v.about, v.wanted, v.found, said)
	}
	d.WriteString(targets)
	r.writeRequests(&d)
	r.writeTimes(&d)
	d.WriteString(columns)
	r.writeBare(&d)
	r.writeOthers(&d)
	return d.String()
}

// writeRequests writes how many requests each step took.
func (r *results) writeRequests(d *strings.Builder) {
	kinds := []kind{kindSets, kindRecord, kindPods, kindStatuses, kindEvents, kindOther, kindReads, kindWatches, kindLeases}
	d.WriteString("\n## Requests of the operator\n\n| step | pods with another set |")
	for _, k := range kinds {
		fmt.Fprintf(d, " %s |", k)
	}
	fmt.Fprintf(d, " answered with an error | polls |\n|%s\n", strings.Repeat("---|", len(kinds)+4))
	for _, m := range r.steps {
		fmt.Fprintf(d, "| %s | %s |", m.name, measurement.Thousands(m.pods))
		for _, k := range kinds {
			fmt.Fprintf(d, " %s |", measurement.Thousands(m.requests[k]))
		}
		fmt.Fprintf(d, " %d | %s |\n", m.errors(), measurement.Thousands(int(m.polls)))
	}
}

// writeTimes writes how long each step took, and what of the machine.
func (r *results) writeTimes(d *strings.Builder) {
	d.WriteString("\n## Time, memory and etcd\n\n| step | pods with another set | first | median | last | served | status | processor time: operator | API server | etcd | measurement | resident | written | written for each pod | held |\n|" + strings.Repeat("---|", 15) + "\n")
	for _, m := range r.steps {
		row := []string{m.name, measurement.Thousands(m.pods)}
		if m.pods == 0 {
			row = append(row, "–", "–", "–", "–", seconds(m.took))
		} else {
			row = append(row, seconds(m.first), seconds(m.median), seconds(m.last), seconds(m.served), seconds(m.said))
		}
		perPod := "–"
		if m.pods > 0 {
			perPod = kibibytes(m.stored.written / int64(m.pods))
		}
		row = append(row, seconds(m.operator), seconds(m.apiServer), seconds(m.etcd), seconds(m.own), measurement.Mebibytes(m.peak), measurement.Mebibytes(m.stored.written), perPod, measurement.Mebibytes(m.stored.held))
		fmt.Fprintf(d, "| %s |\n", strings.Join(row, " | "))
	}
}

// writeOthers names the requests that are neither of the work nor of watching, and the
// errors.
func (r *results) writeOthers(d *strings.Builder) {
	var lines []string
	for _, m := range r.steps {
		var said []string
		for _, what := range slices.Sorted(maps.Keys(m.others)) {
			said = append(said, fmt.Sprintf("%s (%d)", what, m.others[what]))
		}
		for _, what := range slices.Sorted(maps.Keys(m.refused)) {
			said = append(said, fmt.Sprintf("**%s** (%d)", what, m.refused[what]))
		}
		if len(said) > 0 {
			lines = append(lines, fmt.Sprintf("| %s | %s |", m.about(), strings.Join(said, ", ")))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(d, "\n## Other requests\n\nReads, writes of other objects, and, in bold with the HTTP status, what the API server answered with an error.\n\n| step | requests |\n|---|---|\n%s\n", strings.Join(lines, "\n"))
	}
}

func (m *result) errors() (sum int) {
	for _, count := range m.refused {
		sum += count
	}
	return sum
}

func (r *results) errorsText() string {
	requests, refused := 0, 0
	for _, m := range r.steps {
		for _, count := range m.requests {
			requests += count
		}
		refused += m.errors()
	}
	return fmt.Sprintf("%s requests of the operator, %d answered with an error, %d lines with errors in its log, %d times out of memory", measurement.Thousands(requests), refused, len(r.errorLines), r.kills)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func kibibytes(bytes int64) string { return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10)) }
