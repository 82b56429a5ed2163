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
	// slowness is by how much more than a write takes a kubelet may be later: it
	// waits for the API server several times.
	slowness     = 4
	mostSlowness = 30 * time.Second

	firstQuestion = 150 * time.Millisecond // after a try
	nextQuestion  = 150 * time.Millisecond // while behind
	// While behind after all tries, or without any: a kubelet resyncs within
	// about 90 s.
	patientQuestion = time.Second
	patientUntil    = 2 * time.Minute // after the last try; then less often
	restingQuestion = 15 * time.Second

	// firstPatience is how long the first question waits for its answer: after a
	// change of leader nothing is known of any broker, and those that can't be
	// reached are not to hold up the others.
	firstPatience = 250 * time.Millisecond

	// A broker that doesn't answer is asked again after unansweredFirst, then
	// twice that and so on up to unansweredMost.
	unansweredFirst = 250 * time.Millisecond
	unansweredMost  = time.Minute
	// unansweredTrusted is how many questions in a row may stay without an
	// answer before what the broker said earlier no longer counts.
	unansweredTrusted = 3
	// unverifiedAfter is how many questions in a row stay without an answer
	// before a broker that never answered is called unverified.
	unverifiedAfter = 2

	// A broker that confirmed is asked again within these bounds.
	recheckLeast = 3 * time.Minute
	recheckMost  = 7 * time.Minute

	// waitingIsBehind is how long a broker may wait for its first set before
	// it counts as behind.
	waitingIsBehind = 5 * time.Second
)

// Target is the set that the brokers of a namespace are to serve.
type Target struct {
	// Digest identifies the set.
	Digest string
	// Revision is the number that it is signed with. Brokers that need no signature
	// have none.
	Revision int64
	// Written is when this process wrote it to the ConfigMap, zero where it
	// found it there.
	Written time.Time
}

// broker is what is known of one pod's broker, and what was done for it.
type broker struct {
	// hurry is whether annotations are written to hurry kubelets.
	hurry  bool
	pod    pod
	target Target
	// outdated is whether it is another broker than a new pod would get.
	outdated bool

	tries int       // annotations written for the target
	tried time.Time // when the last of them was written
	// took is how long the API server took to write it. It is as slow for kubelets,
	// which read the pod and the set from it.
	took    time.Duration
	value   string // the annotation written last, for whichever target
	writing bool   // an annotation is being written just now
	// unsure is the annotation that was being written when an error came, and may be
	// written all the same; unsureFor is the target's digest.
	unsure, unsureFor string
	wasLate           bool   // it said that it serves another set than the target
	wokenFor          string // digest for which a broker that can't be asked was woken
	// detour is whether it was sent another set since it said that it serves the
	// target, and has no revision by which to tell what it said before from that.
	detour bool

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
	wait   action = iota // nothing, until the time given, or until something changes
	annote               // write the annotation
	ask                  // ask the broker
)

// see takes in what the cache knows of the pod.
func (b *broker) see(p pod, now time.Time) {
	if b.pod.uid != p.uid {
		*b = broker{hurry: b.hurry, target: b.target}
	}
	if b.pod.instance != p.instance || !p.started {
		b.known, b.failures, b.asked, b.pause = false, 0, time.Time{}, 0
	}
	b.pod = p
	if b.unsure != "" && b.unsure == p.annotation {
		b.wrote(b.unsureFor, b.unsure, 0, now)
	}
}

// aim makes the broker's target this one. The same set written again means that
// somebody changed it in between: what the broker said before may be outdated.
//
// A change that is taken back before it was confirmed makes a target of what the
// broker said it serves, while the change may still be on its way to it. What it
// said then confirms nothing, and it is brought the way back as any other change.
// Where sets have revisions, the way back has a higher one, and needs no such care.
func (b *broker) aim(t Target) {
	if b.target.Digest != t.Digest {
		b.detour = !b.pod.sealed && b.hurry && b.target.Digest != "" && b.known && b.answer.Digest == t.Digest
		if !b.pod.sealed && !b.hurry && b.known && b.answer.Digest == t.Digest {
			b.known, b.failures, b.asked, b.pause = false, 0, time.Time{}, 0
		}
	}
	if b.target.Digest != t.Digest || b.target.Revision != t.Revision || !b.target.Written.Equal(t.Written) {
		b.tries, b.tried, b.wasLate, b.confirmed = 0, time.Time{}, false, time.Time{}
	}
	if b.target.Digest == t.Digest && !b.target.Written.Equal(t.Written) {
		b.known, b.failures, b.asked, b.pause = false, 0, time.Time{}, 0
	}
	b.target = t
}

// next says what to do, and when where it is to wait: after 0 it waits for a
// change.
func (b *broker) next(now time.Time) (action, time.Duration) {
	annotate := b.hurry && b.tries < MaxTries && !b.writing
	switch {
	case b.target.Digest == "" || b.pod.running.IsZero():
		return wait, 0
	case !b.pod.started:
		return b.nextWhileWaiting(now, annotate)
	case !b.pod.address.IsValid():
		if annotate && b.wokenFor != b.target.Digest && !b.hasAnnotation() {
			return annote, 0
		}
		return wait, 0
	case !b.known:
		if b.failures >= unverifiedAfter && annotate && b.wokenFor != b.target.Digest && !b.hasAnnotation() {
			return annote, 0
		}
		return at(ask, b.asked.Add(b.pause), now)
	case b.serves() && !b.misplaced() && !b.detour:
		return at(ask, b.answered.Add(b.recheck), now)
	}
	// It is behind, or would be after a restart.
	switch {
	case annotate && b.tries == 0:
		return annote, 0
	case annotate && b.answered.Sub(b.tried) >= b.retryAfter():
		return annote, 0
	case b.failures > 0:
		return at(ask, b.asked.Add(b.pause), now)
	case b.tries == 0 || b.exhausted():
		pause := patientQuestion
		if now.Sub(latest(b.tried, b.target.Written)) > patientUntil {
			pause = restingQuestion
		}
		return at(ask, b.asked.Add(pause), now)
	default:
		return at(ask, latest(b.asked.Add(nextQuestion), b.tried.Add(firstQuestion)), now)
	}
}

// nextWhileWaiting is for a broker that has no set yet, whose volume may have
// been set up before the ConfigMap had one. It answers no questions.
func (b *broker) nextWhileWaiting(now time.Time, annotate bool) (action, time.Duration) {
	if !annotate {
		return at(wait, b.pod.running.Add(waitingIsBehind), now)
	}
	if b.tries == 0 && b.target.Written.After(b.pod.running) {
		return annote, 0
	}
	return at(annote, latest(b.pod.running, b.tried).Add(b.retryAfter()), now)
}

// serves is true when it said that it serves the target. One that takes signed sets
// has to have this revision of it, or a higher one: the same set can come again.
func (b *broker) serves() bool {
	return b.answer.Digest == b.target.Digest && (!b.pod.sealed || b.answer.Revision >= b.target.Revision)
}

// ahead is true when it said that it serves a higher revision than the target's: the
// ConfigMap was put back to an older one, as with a cluster that was restored.
func (b *broker) ahead() bool {
	return b.known && b.pod.sealed && b.target.Digest != "" && b.answer.Revision > b.target.Revision
}

// misplaced is true when the broker kept the target in memory while its
// directory holds something else, which it refused: a set that was damaged and
// put right again. It serves what it should, and could not start with what the
// kubelet left there.
func (b *broker) misplaced() bool {
	return refused(b.answer.Reason) || b.answer.Reason == string(directory.Missing)
}

// brought is true when the set was written by this process and came to the
// broker after that, so that the time it took means something.
func (b *broker) brought() bool {
	return !b.target.Written.IsZero() && !b.confirmed.IsZero() && (b.wasLate || b.tries > 0)
}

// exhausted is true when all tries are made and the last has had its time; where
// none are made, when a kubelet's own resync is overdue.
func (b *broker) exhausted() bool {
	if !b.hurry {
		return b.answered.Sub(b.target.Written) >= patientUntil
	}
	return b.tries >= MaxTries && b.answered.Sub(b.tried) >= b.retryAfter()
}

// retryAfter is how long the broker may be behind after its last try: RetryAfter,
// and longer where the API server is slow.
func (b *broker) retryAfter() time.Duration {
	return RetryAfter + min(slowness*b.took, mostSlowness)
}

// hasAnnotation is true when the pod was annotated for the target already, by
// this process or by the leader before.
func (b *broker) hasAnnotation() bool {
	return strings.HasPrefix(b.annotation(), b.target.Digest+".")
}

func (b *broker) annotation() string {
	if b.value != "" {
		return b.value
	}
	return b.pod.annotation
}

// nextValue is the annotation to write: the try's number, or a higher one where
// that is what the pod has already.
func (b *broker) nextValue() string {
	for n := b.tries + 1; ; n++ {
		if value := fmt.Sprintf("%s.%d", b.target.Digest, n); value != b.annotation() {
			return value
		}
	}
}

// wrote takes in that the annotation was written for a target, and how long it took.
func (b *broker) wrote(digest, value string, took time.Duration, now time.Time) {
	b.unsure, b.unsureFor, b.took = "", "", took
	b.value = value
	b.wokenFor = digest
	if b.target.Digest == digest {
		b.tries++
		b.tried = now
	}
}

// heard takes in the broker's answer and returns true when it is the first that
// confirms the target.
func (b *broker) heard(answer confirm.Answer, now time.Time) bool {
	b.known, b.answer, b.failures = true, answer, 0
	b.asked, b.answered = now, now
	b.recheck = recheckLeast + rand.N(recheckMost-recheckLeast)
	if !b.serves() {
		b.wasLate, b.confirmed = true, time.Time{}
		return false
	}
	if b.detour {
		if b.tries == 0 || now.Sub(b.tried) < RetryAfter {
			return false
		}
		b.detour = false
	}
	if !b.confirmed.IsZero() {
		return false
	}
	b.confirmed = now
	return true
}

// unheard takes in that a question stayed without an answer.
func (b *broker) unheard(now time.Time) {
	b.failures++
	b.asked, b.pause = now, unanswered(b.failures)
	if b.failures >= unansweredTrusted {
		b.known = false
	}
}

// mostFailures is the number of failures from which on more make no difference to
// the priority.
const mostFailures = 100

// priority is that of the next question and the next annotation. The more questions
// stayed without an answer, the later the next is asked: each may take a second,
// and brokers that do answer are not to wait for it. A broker that was not asked
// yet comes before all that did not answer.
func (b *broker) priority() int {
	if b.failures == 0 {
		return 0
	}
	return handler.LowPriority - min(b.failures, mostFailures)
}

// unanswered is the pause after so many questions in a row without an answer.
func unanswered(failures int) time.Duration {
	pause := unansweredMost
	if shift := failures - 1; shift < 10 {
		pause = min(unansweredFirst<<shift, unansweredMost)
	}
	return pause*3/4 + rand.N(pause/2) // so that brokers lost together don't return together
}

// at does something at a time: now if it has come.
func at(what action, when, now time.Time) (action, time.Duration) {
	if pause := when.Sub(now); pause > 0 {
		return wait, pause
	}
	return what, 0
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
