// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"
)

// introduction explains the page. It has no numbers of a run.
const introduction = `# Faults

What users of the operator and of brokers see when a part of the cluster fails, and what to do. This page is what the command wrote:

` + "```sh\nmake chaos\n```" + `

It breaks [a real cluster](../hack/cluster/README.md) with one node, one part after the other. In it two pods call their brokers without a pause,
as released clients do, about 180 times a second each. They repeat a call that fails with ` + "`UNAVAILABLE`" + ` up to four times, within 7.5 s. In the middle of
each fault, the profile that they use is changed. Twice a second, the API server is asked to admit a pod with a broker and a pod without one. A
fault fails the command if a call fails, if a call has to be repeated although no broker went away, if the API server refuses a pod that asks for
no broker, or if not everything is right again after 6 minutes.
`

// columns explains the table.
const columns = `
* **Lasted** is from the beginning of the fault until its cause was gone: until the part was started again, or the process was killed.
* **Failed** calls were lost. **Repeated** calls were in flight when a broker went away, or came before it was back; the client's repetition succeeded.
* **Refused** are requests to admit a pod, of all those while the fault lasted and until everything was right.
* **Change accepted**: whether the API server accepted the change of the profile at once, or how often it refused the change before.
* **Newest profile** is the time from the end of the fault until the last broker served the changed profile. "During" is before the end.
* **All right** is the time from the end of the fault until also these hold: the node is ready, both replicas of the operator are ready and admit
  pods, the profile's condition ` + "`Ready`" + ` counts all brokers, and a new pod with a broker has started and serves the changed profile. A pod
  needs about 3 s for that also without a fault.
`

// markdown renders the page.
func (r *results) markdown() string {
	var d strings.Builder
	d.WriteString(introduction)
	calls, failed, repeated, wrong := r.sums()
	fmt.Fprintf(&d, "\n`make chaos`, %s, load %s at the start, %s, operator %s, Kubernetes %s; %d faults in %s; %d calls, %d failed, %d repeated; %d faults with something wrong.\n",
		r.machine, r.load, r.began.UTC().Format("2 January 2006 15:04 MST"), r.version, r.kubernetes, len(r.all),
		time.Since(r.began).Round(time.Second), calls, failed, repeated, wrong)
	header := []string{"fault", "lasted", "calls", "failed", "repeated", "refused: with a broker", "others", "change accepted", "newest profile", "all right"}
	fmt.Fprintf(&d, "\n| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat("---|", len(header)))
	for _, each := range r.all {
		fmt.Fprintf(&d, "| [%s](#%s) | %s |\n", each.fault.title, anchor(each.fault.title), strings.Join(each.cells(), " | "))
	}
	d.WriteString(columns)
	for _, each := range r.all {
		fmt.Fprintf(&d, "\n## %s\n\n`make chaos FAULTS=%s`. %s\n\n", each.fault.title, each.fault.name, each.fault.how)
		for _, note := range each.notes {
			fmt.Fprintf(&d, "%s\n\n", note)
		}
		fmt.Fprintf(&d, "**What a user sees.** %s\n\n**What to do.** %s\n", each.fault.sees, each.fault.act)
		for _, problem := range each.problems {
			fmt.Fprintf(&d, "\n**Wrong**: %s\n", strings.ReplaceAll(problem, "\n", " "))
		}
	}
	return d.String()
}

func (r *results) sums() (calls, failed, repeated int64, wrong int) {
	for _, each := range r.all {
		calls, failed, repeated = calls+each.calls, failed+each.failed, repeated+each.repeated
		if len(each.problems) > 0 {
			wrong++
		}
	}
	return calls, failed, repeated, wrong
}

// cells are the cells of a row of the table, behind the first.
func (r *result) cells() []string {
	change := "at once"
	if r.write.refused > 0 {
		change = fmt.Sprintf("after %d refusals", r.write.refused)
	}
	served := seconds(r.served)
	if r.served < 0 {
		served = "during"
	}
	lasted := seconds(r.lasted)
	if r.fault.name == "none" {
		lasted, served = "–", seconds(r.servedAfterWrite)
	}
	return []string{lasted, fmt.Sprint(r.calls), fmt.Sprint(r.failed), fmt.Sprint(r.repeated), r.withBroker.text(), r.without.text(),
		change, served, seconds(r.right)}
}

func (a *admission) text() string { return fmt.Sprintf("%d of %d", a.refused, a.tries) }

// seconds writes a duration with one digit behind the point.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// anchor returns the anchor of a heading, as GitHub makes it.
func anchor(title string) string {
	return strings.ReplaceAll(strings.ToLower(title), " ", "-")
}
