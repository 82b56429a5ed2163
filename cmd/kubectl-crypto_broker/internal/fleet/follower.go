// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/apierror"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/brokers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/inventory"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/workload"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
)

// Times between two looks. Profiles are followed at once, but a page gets at most four states a
// second. A look at pods costs a dry run, and questions to brokers whose profiles are not settled.
const (
	pageInterval   = 250 * time.Millisecond
	surveyInterval = 3 * time.Second
	surveyAnyway   = 30 * time.Second
	askInterval    = time.Minute
	// askShare bounds the time for asking brokers what calls used: one part in askShare.
	askShare = 20
)

// Follower follows a cluster.
type Follower struct {
	Config *rest.Config
	Client kubernetes.Interface
	Scope  Scope
	// Context is the context of the kubeconfig, which the page shows. It is empty if there is
	// none.
	Context string
	// Flags is appended to each command that the page shows, such as " --context=test".
	Flags string

	watches *watches
	rights  rights
	// profiles and pods have an element if something has changed.
	profiles, pods chan struct{}

	mu       sync.Mutex // guards what is below
	rows     []brokers.Row
	surveyed bool
	notes    []string
	silent   string // says that the operator seems not to run
	uses     []inventory.Use
	posture  Posture // the answers of brokers, without Uses
}

// Run calls publish with each new state of the fleet, until the context ends.
func (f *Follower) Run(ctx context.Context, publish func(*Fleet) error) error {
	f.profiles, f.pods = make(chan struct{}, 1), make(chan struct{}, 1)
	f.rights = rights{client: f.Client, wait: rightsWait, known: map[downgrade.Source]answer{}}
	var err error
	f.watches, err = newWatches(f.Config, f.Client, f.Scope.names(), func() { signal(f.profiles) }, func() { signal(f.pods) })
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Go(func() { f.watches.run(ctx) })
	all.Go(func() { f.surveyAll(ctx) })
	all.Go(func() { f.askAll(ctx) })
	all.Go(func() { f.followOperator(ctx) })
	for {
		if err := publish(f.fleet(ctx)); err != nil {
			return err
		}
		if !pause(ctx, pageInterval, nil) || !pause(ctx, rightsLast, f.profiles) {
			all.Wait()
			return nil
		}
	}
}

// signal records a change.
func signal(changes chan struct{}) {
	select {
	case changes <- struct{}{}:
	default: // a change is already signaled
	}
}

// pause waits for a change, or for a time. It returns false if the context has ended.
func pause(ctx context.Context, longest time.Duration, changes <-chan struct{}) bool {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-changes:
	}
	return ctx.Err() == nil
}

// Shows returns a sentence about the namespaces and the context that the page shows.
func (f *Follower) Shows() string {
	if f.Context == "" {
		return f.Scope.String()
	}
	return f.Scope.String() + " of context " + f.Context
}

// fleet makes the content of the page from the current state.
func (f *Follower) fleet(ctx context.Context) *Fleet {
	objects := f.watches.objects()
	now := &Fleet{Made: time.Now().UTC(), Scope: f.Shows(), Notices: []string{}}
	if f.Scope.Notice != "" {
		now.Notices = append(now.Notices, f.Scope.Notice)
	}
	now.Notices = append(now.Notices, f.watches.notes()...)
	asking, stop := context.WithTimeout(ctx, f.rights.wait)
	defer stop()
	now.Rollouts = rolloutsOf(objects, func(source downgrade.Source) string { return f.rights.patch(asking, source) })

	f.mu.Lock()
	defer f.mu.Unlock()
	now.Notices = append(now.Notices, f.notes...)
	if f.silent != "" {
		now.Notices = append(now.Notices, f.silent)
	}
	profiles := profilesOf(objects, f.rows)
	for _, p := range profiles {
		switch p.Tone {
		case Bad:
			now.Counts.NotServed++
		case Busy:
			now.Counts.Propagating++
		}
	}
	now.Counts.Profiles = len(profiles)
	countPods(f.rows, &now.Counts)
	now.Profiles, now.Surveyed = first(profiles, maxProfiles), f.surveyed
	now.Problems = first(problemsOf(f.rows, f.Flags), maxProblems)
	now.Posture = f.posture
	now.Posture.declared(objects)
	now.Posture.deprecated(objects, f.uses)
	now.Posture.used(f.uses)
	return now
}

// surveyAll looks at pods after changes, and at intervals without changes.
func (f *Follower) surveyAll(ctx context.Context) {
	owners := workload.NewOwners(f.Client)
	// The first look begins when all pods have been read. Without the right to read them, there
	// is none.
	for !f.watches.podsAreRead() {
		if !pause(ctx, pageInterval, nil) {
			return
		}
	}
	for {
		rows, notes, err := f.survey(ctx, owners)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			notes = append(notes, "Pods could not be looked at: "+apierror.OneLine(apierror.Plain(err))+".")
			owners = workload.NewOwners(f.Client) // the old cache remembers errors
		}
		f.mu.Lock()
		f.notes = notes
		if err == nil {
			f.rows, f.surveyed = rows, true
		}
		f.mu.Unlock()
		signal(f.profiles)
		if !pause(ctx, surveyInterval, nil) || !pause(ctx, surveyAnyway, f.pods) {
			return
		}
	}
}

// survey looks at all pods. It asks only brokers of namespaces whose profiles are not settled.
// The other brokers have confirmed to the operator that they serve their set.
func (f *Follower) survey(ctx context.Context, owners *workload.Owners) (rows []brokers.Row, notes []string, err error) {
	unsettled := map[string]bool{}
	for _, o := range f.watches.objects() {
		if o.isSettled() {
			continue
		}
		unsettled[o.source.Namespace] = true
		for _, in := range o.namespaces {
			unsettled[in.Name] = unsettled[in.Name] || in.UpdatedPods < in.Pods
		}
	}
	survey := brokers.Survey{Client: f.Client, Ask: true, Judge: true, Owners: owners, AskIn: func(namespace string) bool { return unsettled[namespace] }}
	for _, namespace := range f.Scope.names() {
		var pods []*corev1.Pod
		for _, found := range f.watches.pods[namespace].List() {
			pods = append(pods, found.(*corev1.Pod))
		}
		more, noted, err := survey.Of(ctx, pods, namespace)
		if err != nil {
			return nil, nil, err
		}
		if doubt := brokers.Doubt(more); doubt != "" {
			noted = append(noted, doubt)
		}
		for _, note := range noted {
			notes = append(notes, sentence(note))
		}
		rows = append(rows, more...)
	}
	return rows, notes, nil
}

// askAll asks brokers what calls used, at intervals.
func (f *Follower) askAll(ctx context.Context) {
	for {
		began := time.Now()
		posture, uses, err := f.ask(ctx, began)
		if ctx.Err() != nil {
			return
		}
		f.mu.Lock()
		if err != nil {
			f.posture.Failed = apierror.OneLine(apierror.Plain(err))
		} else {
			f.posture, f.uses = posture, uses
		}
		f.mu.Unlock()
		signal(f.profiles)
		if !pause(ctx, max(askInterval, askShare*time.Since(began)), nil) {
			return
		}
	}
}

// ask asks all brokers what calls used.
func (f *Follower) ask(ctx context.Context, now time.Time) (p Posture, uses []inventory.Use, err error) {
	for _, namespace := range f.Scope.names() {
		maker := inventory.Maker{Client: f.Client, Progress: io.Discard, Namespace: namespace, Now: now}
		found, err := maker.Make(ctx)
		if err != nil {
			return p, nil, err
		}
		uses = append(uses, found.Uses...)
		p.Brokers += found.Brokers
		p.Answered += found.Answered
	}
	p.Asked = new(now.UTC())
	return p, uses, nil
}

// sentence returns a note with a capital letter and a full stop.
func sentence(note string) string {
	first, size := utf8.DecodeRuneInString(note)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(note[size:], ".") + "."
}
