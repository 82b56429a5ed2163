// SPDX-License-Identifier: Apache-2.0

package accesssource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/validation/field"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/accesspolicy"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/federation"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/resources"
)

// Options of a source. All but Modules and Peers are required.
type Options struct {
	// Objects lists and watches KeyAccessPolicies and KeyAccessPeers of one namespace. Its owner starts it.
	Objects cache.Cache
	// Modules compiles policies in Rego, nil where they are off.
	Modules accesspolicy.CompileModule
	// Issuers are the issuers for callers of peers that name no issuers.
	Issuers []caller.Issuer
	// PoliciesChanged is called with each new set, and with the reason if a change has no effect.
	PoliciesChanged func(*accesspolicy.Set, error)
	// Peers is nil for a service that signs no statements, which can have no peers.
	Peers  *federation.Peers
	Logger *slog.Logger
}

// Source has policies and peers. It is safe for concurrent use.
type Source struct {
	options Options
	set     atomic.Pointer[accesspolicy.Set]
	// ready is closed once there are policies that are in use.
	ready chan struct{}

	mu       sync.Mutex
	synced   bool
	policies *group[*accesspolicy.Policy]
	peers    *group[federation.Peer]
}

// errNoStatements is the error of peers in a service that signs no statements.
var errNoStatements = errors.New("the configuration of the service has no federation.keyFiles, which sign requests to peers")

// New returns a source, which has no policy and no peer before Run.
func New(options Options) *Source {
	s := &Source{options: options, ready: make(chan struct{})}
	s.policies = newGroup("KeyAccessPolicy", func(made []*accesspolicy.Policy) error {
		set, err := accesspolicy.NewSet(made)
		if err == nil {
			s.set.Store(set)
		}
		return err
	})
	s.peers = newGroup("KeyAccessPeer", func(made []federation.Peer) error {
		switch {
		case options.Peers != nil:
			return options.Peers.Update(made)
		case len(made) > 0:
			return errNoStatements
		}
		return nil
	})
	return s
}

// Set returns the policies that are in use. It is nil before [Source.Ready].
func (s *Source) Set() *accesspolicy.Set { return s.set.Load() }

// Ready is closed once there are policies that are in use, which may be none.
func (s *Source) Ready() <-chan struct{} { return s.ready }

// Missing returns why the source is not ready.
func (s *Source) Missing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.synced {
		return "the policies are not read yet"
	}
	return s.policies.problem
}

// Run follows the resources until ctx ends.
func (s *Source) Run(ctx context.Context) error {
	var synced []toolscache.InformerSynced
	for _, followed := range []struct {
		object client.Object
		put    func(client.Object) bool
		remove func(string)
		apply  func()
	}{
		{&v1alpha1.KeyAccessPolicy{}, s.putPolicy, s.policies.remove, s.applyPolicies},
		{&v1alpha1.KeyAccessPeer{}, s.putPeer, s.peers.remove, s.applyPeers},
	} {
		informer, err := s.options.Objects.GetInformer(ctx, followed.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("follow %T: %w", followed.object, err)
		}
		registration, err := informer.AddEventHandler(s.handler(followed.put, followed.remove, followed.apply))
		if err != nil {
			return fmt.Errorf("follow %T: %w", followed.object, err)
		}
		defer func() { _ = informer.RemoveEventHandler(registration) }() // the informer ends as well
		synced = append(synced, registration.HasSynced)
	}
	if toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		s.mu.Lock()
		s.synced = true
		s.applyPolicies()
		s.applyPeers()
		s.mu.Unlock()
		<-ctx.Done()
	}
	return nil
}

// handler puts and removes objects, and applies what has changed once all have been read.
func (s *Source) handler(put func(client.Object) bool, remove func(string), apply func()) toolscache.ResourceEventHandler {
	locked := func(change func() bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if change() && s.synced {
			apply()
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { locked(func() bool { return put(o.(client.Object)) }) },
		UpdateFunc: func(_, o any) { locked(func() bool { return put(o.(client.Object)) }) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			locked(func() bool { remove(o.(client.Object).GetName()); return true })
		},
	}
}

func (s *Source) putPolicy(found client.Object) bool {
	return s.policies.put(found, func() (*accesspolicy.Policy, field.ErrorList) {
		return resources.Policy(found.(*v1alpha1.KeyAccessPolicy), s.options.Modules)
	})
}

func (s *Source) putPeer(found client.Object) bool {
	return s.peers.put(found, func() (federation.Peer, field.ErrorList) {
		return resources.Peer(found.(*v1alpha1.KeyAccessPeer), s.options.Issuers)
	})
}

func (s *Source) applyPolicies() {
	if err := s.policies.apply(); err != nil {
		s.options.PoliciesChanged(nil, err)
		return
	}
	s.options.PoliciesChanged(s.set.Load(), nil)
	select {
	case <-s.ready:
	default:
		close(s.ready)
	}
}

func (s *Source) applyPeers() {
	if err := s.peers.apply(); err != nil {
		s.options.Logger.Error("a change of the peers has no effect; the last good ones stay in use", "error", err)
		return
	}
	s.options.Logger.Info("peers changed", "peers", len(s.peers.all))
}

// Report says which policies and peers are in use, in the order of their UIDs.
func (s *Source) Report() *providerreport.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := append(s.policies.report(), s.peers.report()...)
	slices.SortFunc(all, func(a, b providerreport.Provider) int { return cmp.Compare(a.UID, b.UID) })
	return &providerreport.Report{Providers: all}
}
