// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/directory"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
)

// Times of the distribution. A kubelet takes 0.65 s in the median from the
// annotation to the file.
const (
	// MaxTries is how often an annotation is written for one set.
	MaxTries = 4
	// RetryAfter is how long a broker may be behind after a try, with an API server
	// that writes at once.
	RetryAfter = 1500 * time.Millisecond
	// slownessFactor is how many times the duration of a write a kubelet may be later,
	// because it waits for the API server several times. maxSlowness bounds it.
	slownessFactor = 4
	maxSlowness    = 30 * time.Second

	// firstDelay is the time before the first question after a try, and pollInterval the one
	// between questions while behind. Few kubelets take less than firstDelay.
	firstDelay   = 300 * time.Millisecond
	pollInterval = 250 * time.Millisecond
	// crowdDelay is the time before the first question while more than crowd annotations
	// wait, half a second of writes. By then nearly every kubelet has brought the set, so one
	// question does. Each question takes processor time that the annotations need.
	crowdDelay = 1250 * time.Millisecond
	crowd      = 100
	// slowInterval is the time between questions while the broker is behind after all
	// tries, or without any. A kubelet resyncs within about 90 s. From slowUntil after
	// the last try on it is slowestInterval.
	slowInterval    = time.Second
	slowUntil       = 2 * time.Minute
	slowestInterval = 15 * time.Second

	// resyncedAfter is the time after a write of a set in which a kubelet has brought it to
	// a pod without an annotation.
	resyncedAfter = 90 * time.Second

	// firstTimeout bounds the first question. After a change of leader nothing is known
	// of any broker, and those that can't be reached must not delay the others.
	firstTimeout = 250 * time.Millisecond

	// A broker that doesn't answer is asked again after minBackoff, then after twice
	// that, and so on up to maxBackoff.
	minBackoff = 250 * time.Millisecond
	maxBackoff = time.Minute
	// forgetAfter is the number of questions in a row without an answer after which the
	// broker's last answer no longer counts.
	forgetAfter = 3
	// unverifiedAfter is the number of questions in a row without an answer after which
	// a broker that never answered is called unverified.
	unverifiedAfter = 2

	// A broker that confirmed is asked again after a time between these.
	minRecheck = 3 * time.Minute
	maxRecheck = 7 * time.Minute
	// rolloutRecheck is that time while the broker's set rolls a profile out. It is
	// rolloutQuestion for each broker of the cluster where that is longer: at most 100
	// questions a second.
	rolloutRecheck  = 10 * time.Second
	rolloutQuestion = 10 * time.Millisecond

	// waitingIsBehind is how long a broker may wait for its first set before it counts
	// as waiting.
	waitingIsBehind = 5 * time.Second
)

// Target is the set that the brokers of a namespace should serve.
type Target struct {
	// Digest identifies the set.
	Digest string
	// Revision is the number that it is signed with. Brokers that need no signature
	// have none.
	Revision int64
	// Written is when this process wrote it to the ConfigMap, zero if it
	// found it there.
	Written time.Time
}

// broker is what is known of one pod's broker, and what was done for it.
type broker struct {
	// annotates is whether annotations are written to make kubelets refresh the
	// profiles at once.
	annotates bool
	pod       pod
	target    Target
	// outdated is whether it is another broker than a new pod would get.
	outdated bool

	tries int       // annotations written for the target
	tried time.Time // when the last of them was written
	// took is how long the API server took to write it. Kubelets, which read the pod and
	// the set from the API server, wait as long.
	took    time.Duration
	value   string // the annotation written last, whatever the target was
	writing bool   // an annotation is being written just now
	// uncertain is the annotation whose write failed, and which may be written all the
	// same. uncertainFor is the target's digest.
	uncertain, uncertainFor string
	wasBehind               bool   // it has answered that it serves another set than the target
	annotatedFor            string // digest of the last annotation written
	// stale is true while the answer confirms nothing: the target was another one since
	// the broker gave it, and the broker reports no revision that shows whether it serves
	// the old set or the same set again.
	stale bool

	known     bool // answer counts
	answer    confirm.Answer
	answered  time.Time
	failures  int // questions in a row without an answer
	asked     time.Time
	pause     time.Duration // before the next question, after failures
	confirmed time.Time     // when it first confirmed the target
	recheck   time.Duration
	reported  class
}

// action is what to do next with a broker.
type action int

const (
	actionWait     action = iota // nothing, until the time given, or until something changes
	actionAnnotate               // write the annotation
	actionAsk                    // ask the broker
)

// setPod updates what the cache knows of the pod.
func (b *broker) setPod(p pod, now time.Time) {
	if b.pod.uid != p.uid {
		*b = broker{annotates: b.annotates, target: b.target}
	}
	switch {
	case b.pod.instance == p.instance && !b.pod.running.IsZero() && !p.running.IsZero():
		p.running = b.pod.running
	case p.running.After(now):
		p.running = now // the clock of the node is ahead
	}
	if b.pod.instance != p.instance || !p.started {
		b.known, b.failures, b.asked, b.pause = false, 0, time.Time{}, 0
	}
	b.pod = p
	if b.uncertain != "" && b.uncertain == p.annotation {
		b.recordWrite(b.uncertainFor, b.uncertain, 0, now)
	}
}

// setTarget sets the broker's target. The same set written again means that somebody
// changed it in between: the broker's last answer may be outdated.
//
// A change may be reverted before the broker confirmed it. Then the target is the set
// that the broker said it serves, while the change may still reach it. The last answer
// confirms nothing then, and the reverted set is distributed as any other change. Sets
// with revisions need no such care, because the reverted set has a higher revision.
func (b *broker) setTarget(t Target) {
	if b.target.Digest != t.Digest {
		b.stale = !b.pod.sealed && b.annotates && b.target.Digest != "" && b.known && b.answer.Digest == t.Digest
		if !b.pod.sealed && !b.annotates && b.known && b.answer.Digest == t.Digest {
			b.known, b.failures, b.asked, b.pause = false, 0, time.Time{}, 0
		}
	}
	if b.target.Digest != t.Digest || b.target.Revision != t.Revision || !b.target.Written.Equal(t.Written) {
		b.tries, b.tried, b.wasBehind, b.confirmed = 0, time.Time{}, false, time.Time{}
	}
	if b.target.Digest == t.Digest && !b.target.Written.Equal(t.Written) {
		b.known, b.failures, b.asked, b.pause = false, 0, time.Time{}, 0
	}
	b.target = t
}

// next returns the next action. For actionWait it also returns for how long, 0 for
// until something changes.
func (b *broker) next(now time.Time) (action, time.Duration) {
	annotate := b.annotates && b.tries < MaxTries && !b.writing
	switch {
	case b.target.Digest == "" || b.pod.running.IsZero():
		return actionWait, 0
	case !b.pod.started:
		return b.nextWhileWaiting(now, annotate)
	case !b.pod.address.IsValid():
		if annotate && b.annotatedFor != b.target.Digest && !b.hasAnnotation() {
			return actionAnnotate, 0
		}
		return actionWait, 0
	case !b.known:
		if b.failures >= unverifiedAfter && annotate && b.annotatedFor != b.target.Digest && !b.hasAnnotation() {
			return actionAnnotate, 0
		}
		return at(actionAsk, b.asked.Add(b.pause), now)
	case b.serves() && !b.directoryDiffers() && !b.stale:
		return at(actionAsk, b.answered.Add(b.recheck), now)
	}
	// It is behind, or would be after a restart.
	switch {
	case annotate && b.tries == 0 && b.mayHaveResynced(now):
		return actionAsk, 0
	case annotate && b.tries == 0:
		return actionAnnotate, 0
	case annotate && b.answered.Sub(b.tried) >= b.retryAfter():
		return actionAnnotate, 0
	case b.failures > 0:
		return at(actionAsk, b.asked.Add(b.pause), now)
	case b.tries == 0 || b.exhausted():
		pause := slowInterval
		if now.Sub(latest(b.tried, b.target.Written)) > slowUntil {
			pause = slowestInterval
		}
		return at(actionAsk, b.asked.Add(pause), now)
	default:
		return at(actionAsk, latest(b.asked.Add(pollInterval), b.tried.Add(firstDelay)), now)
	}
}

// nextWhileWaiting returns the next action for a broker that has no set yet. Its volume
// may have been set up before the ConfigMap had one. It answers no questions.
func (b *broker) nextWhileWaiting(now time.Time, annotate bool) (action, time.Duration) {
	if !annotate {
		return at(actionWait, b.pod.running.Add(waitingIsBehind), now)
	}
	if b.tries == 0 && b.target.Written.After(b.pod.running) {
		return actionAnnotate, 0
	}
	return at(actionAnnotate, latest(b.pod.running, b.tried).Add(b.retryAfter()), now)
}

// mayHaveResynced reports whether the kubelet may have brought the set while the annotation
// waited for a slow API server, and the broker was not asked since.
func (b *broker) mayHaveResynced(now time.Time) bool {
	resynced := b.target.Written.Add(resyncedAfter)
	return b.failures == 0 && now.After(resynced) && b.answered.Before(resynced)
}

// serves reports whether the broker said that it serves the target. One that takes
// signed sets must have this revision or a higher one, because the same set can return
// under another revision.
func (b *broker) serves() bool {
	return b.answer.Digest == b.target.Digest && (!b.pod.sealed || b.answer.Revision >= b.target.Revision)
}

// ahead reports whether the broker said that it serves a higher revision than the
// target's. The ConfigMap was put back to an older one then, as in a cluster that was
// restored from a backup.
func (b *broker) ahead() bool {
	return b.known && b.pod.sealed && b.target.Digest != "" && b.answer.Revision > b.target.Revision
}

// directoryDiffers reports whether the broker has the target in memory, and refused
// what its directory holds: a set that was damaged and put right again. It serves what
// it should, but could not start again with what is in the directory.
func (b *broker) directoryDiffers() bool {
	return refused(b.answer.Reason) || b.answer.Reason == string(directory.Missing)
}

// isTimed reports whether this process wrote the set and the broker took it after that.
// Only then the time in between is a propagation time.
func (b *broker) isTimed() bool {
	return !b.target.Written.IsZero() && !b.confirmed.IsZero() && (b.wasBehind || b.tries > 0)
}

// exhausted reports whether all tries are made and the last has had its time. Where
// none are made, it reports whether a kubelet's own resync is overdue.
func (b *broker) exhausted() bool {
	if !b.annotates {
		return b.answered.Sub(b.target.Written) >= slowUntil
	}
	return b.tries >= MaxTries && b.answered.Sub(b.tried) >= b.retryAfter()
}

// retryAfter returns how long the broker may be behind after its last try: RetryAfter,
// and longer where the API server is slow.
func (b *broker) retryAfter() time.Duration {
	return RetryAfter + min(slownessFactor*b.took, maxSlowness)
}

// hasAnnotation reports whether the pod was annotated for the target already, by this
// process or by an earlier leader.
func (b *broker) hasAnnotation() bool {
	return strings.HasPrefix(b.annotation(), b.target.Digest+".")
}

func (b *broker) annotation() string {
	if b.value != "" {
		return b.value
	}
	return b.pod.annotation
}

// nextValue returns the annotation to write, with the number of the try, or a higher
// number if the pod has that one already.
func (b *broker) nextValue() string {
	for n := b.tries + 1; ; n++ {
		if value := fmt.Sprintf("%s.%d", b.target.Digest, n); value != b.annotation() {
			return value
		}
	}
}

// recordWrite records that the annotation was written for a target, and how long that
// took.
func (b *broker) recordWrite(digest, value string, took time.Duration, now time.Time) {
	b.uncertain, b.uncertainFor, b.took = "", "", took
	b.value = value
	b.annotatedFor = digest
	if b.target.Digest == digest {
		b.tries++
		b.tried = now
	}
}

// recordAnswer records the broker's answer, and reports whether it is the first that
// confirms the target. brokers is how many brokers the cluster has.
func (b *broker) recordAnswer(answer confirm.Answer, brokers int, now time.Time) bool {
	b.known, b.answer, b.failures = true, answer, 0
	b.asked, b.answered = now, now
	b.recheck = minRecheck + rand.N(maxRecheck-minRecheck)
	if b.rolls() {
		b.recheck = min(b.recheck, max(rolloutRecheck, time.Duration(brokers)*rolloutQuestion))
	}
	if !b.serves() {
		b.wasBehind, b.confirmed = true, time.Time{}
		return false
	}
	if b.stale {
		if b.tries == 0 || now.Sub(b.tried) < RetryAfter {
			return false
		}
		b.stale = false
	}
	if !b.confirmed.IsZero() {
		return false
	}
	b.confirmed = now
	return true
}

// recordFailure records that a question had no answer.
func (b *broker) recordFailure(now time.Time) {
	b.failures++
	b.asked, b.pause = now, backoff(b.failures)
	if b.failures >= forgetAfter {
		b.known = false
	}
}

// maxCountedFailures is the number of failures above which further ones make no
// difference to the priority.
const maxCountedFailures = 100

// priority returns the priority of the broker's next request. The more questions had no
// answer, the lower it is: each may take a second, and brokers that answer must not
// wait for it. A broker that was not asked yet comes before all that did not answer.
func (b *broker) priority() int {
	if b.failures == 0 {
		return 0
	}
	return handler.LowPriority - min(b.failures, maxCountedFailures)
}

// backoff returns the pause after so many questions in a row without an answer.
func backoff(failures int) time.Duration {
	pause := maxBackoff
	if shift := failures - 1; shift < 10 {
		pause = min(minBackoff<<shift, maxBackoff)
	}
	return pause*3/4 + rand.N(pause/2) // so that brokers lost together don't return together
}

// at returns the action if its time has come, and else for how long to wait.
func at(what action, when, now time.Time) (action, time.Duration) {
	if pause := when.Sub(now); pause > 0 {
		return actionWait, pause
	}
	return what, 0
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
