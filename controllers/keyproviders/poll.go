// SPDX-License-Identifier: Apache-2.0

package keyproviders

import (
	"context"
	"maps"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

const (
	// DefaultInterval is how often each gateway is asked.
	DefaultInterval = 5 * time.Second
	// soon is the time after a change of a provider at which the gateways are asked in addition.
	soon = 500 * time.Millisecond
	// patience is how long the last answer of a gateway counts that does not answer any more, and
	// how long a gateway may take to open a provider.
	patience = 30 * time.Second
	// maxAsked is the maximum number of gateways that are asked at a time.
	maxAsked = 8
)

// Ask asks a gateway. It returns no report if the report with this ETag is still the newest.
type Ask func(ctx context.Context, address netip.AddrPort, etag string) (report *providerreport.Report, newest string, err error)

// gateway has the answer of one pod.
type gateway struct {
	etag      string
	answered  time.Time
	providers map[types.UID]*providerreport.Provider
}

// poller asks the gateways, and has their answers. It is safe for concurrent use.
type poller struct {
	pods      client.Reader
	namespace string
	// component is the value of the label of the pods to ask.
	component string
	interval  time.Duration
	ask       Ask
	// changed is called for each provider whose report by a gateway has changed.
	changed func(types.NamespacedName)
	kicked  chan struct{}

	mu sync.Mutex
	// objects are all providers.
	objects map[types.UID]types.NamespacedName
	// gateways are the gateways that answer, by the UIDs of their pods.
	gateways map[types.UID]*gateway
	// lastAnswer is the time of the last answer of a gateway, or the last time at which there was
	// nothing to ask.
	lastAnswer time.Time
}

func newPoller(pods client.Reader, component string, options Options, changed func(types.NamespacedName)) *poller {
	return &poller{
		pods: pods, namespace: options.OperatorNamespace, component: component, interval: options.Interval, ask: options.Ask, changed: changed, kicked: make(chan struct{}, 1),
		objects: map[types.UID]types.NamespacedName{}, gateways: map[types.UID]*gateway{}, lastAnswer: time.Now(),
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (p *poller) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. It polls until ctx ends.
func (p *poller) Start(ctx context.Context) error {
	tick := time.NewTicker(p.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-p.kicked:
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(soon):
			}
		}
		p.poll(ctx)
	}
}

// put records a new or changed provider, and asks the gateways soon.
func (p *poller) put(object client.Object) {
	p.mu.Lock()
	p.objects[object.GetUID()] = client.ObjectKeyFromObject(object)
	p.mu.Unlock()
	select {
	case p.kicked <- struct{}{}:
	default:
	}
}

// remove records that a provider is gone.
func (p *poller) remove(object client.Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.objects, object.GetUID())
}

// views returns the answer of each gateway about a provider, or nil for a gateway that does not
// know it. silence is how long no gateway has answered.
func (p *poller) views(uid types.UID) (views []*providerreport.Provider, silence time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pod := range slices.Sorted(maps.Keys(p.gateways)) {
		views = append(views, p.gateways[pod].providers[uid])
	}
	return views, time.Since(p.lastAnswer)
}

// poll asks all gateways once.
func (p *poller) poll(ctx context.Context) {
	if !p.hasObjects() {
		return
	}
	var pods corev1.PodList
	if err := p.pods.List(ctx, &pods, client.InNamespace(p.namespace), client.MatchingLabels{contract.ComponentLabel: p.component}); err != nil {
		log.FromContext(ctx).Error(err, "listing pods to ask for the state of objects failed")
		return
	}
	listed := map[types.UID]bool{}
	answers := make([]*gateway, len(pods.Items))
	var asking errgroup.Group
	asking.SetLimit(maxAsked)
	for i := range pods.Items {
		pod := &pods.Items[i]
		listed[pod.UID] = true
		asking.Go(func() error {
			answers[i] = p.askOne(ctx, pod)
			return nil
		})
	}
	_ = asking.Wait() // the functions return no errors
	changed := map[types.UID]bool{}
	p.mu.Lock()
	for i, answer := range answers {
		if answer != nil {
			p.take(pods.Items[i].UID, answer, changed)
		}
	}
	for pod, known := range p.gateways {
		if !listed[pod] || time.Since(known.answered) > patience {
			delete(p.gateways, pod)
			p.noteAll(changed) // also those that only this gateway lacked
		}
	}
	var keys []types.NamespacedName
	for uid := range changed {
		if key, there := p.objects[uid]; there {
			keys = append(keys, key)
		}
	}
	p.mu.Unlock()
	for _, key := range keys {
		p.changed(key)
	}
}

// hasObjects reports whether there is a provider to ask about.
func (p *poller) hasObjects() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.objects) > 0 {
		return true
	}
	clear(p.gateways)
	p.lastAnswer = time.Now()
	return false
}

// askOne asks the gateway of a pod. It returns nil if there is no answer, and an answer without
// providers if nothing has changed.
func (p *poller) askOne(ctx context.Context, pod *corev1.Pod) *gateway {
	address, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil || !pod.DeletionTimestamp.IsZero() {
		return nil
	}
	p.mu.Lock()
	etag := ""
	if known := p.gateways[pod.UID]; known != nil {
		etag = known.etag
	}
	p.mu.Unlock()
	report, newest, err := p.ask(ctx, netip.AddrPortFrom(address, statusPort(pod)), etag)
	if err != nil {
		log.FromContext(ctx).V(1).Info("a key gateway or a key access service did not answer", "pod", pod.Name, "error", err.Error())
		return nil
	}
	answer := &gateway{etag: newest, answered: time.Now()}
	if report != nil {
		answer.providers = make(map[types.UID]*providerreport.Provider, len(report.Providers))
		for i := range report.Providers {
			answer.providers[report.Providers[i].UID] = &report.Providers[i]
		}
	}
	return answer
}

// statusPort returns the status port of a gateway.
func statusPort(pod *corev1.Pod) uint16 {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == contract.KeyGatewayStatusPortName && port.ContainerPort > 0 && port.ContainerPort <= math.MaxUint16 {
				return uint16(port.ContainerPort)
			}
		}
	}
	return contract.DefaultKeyGatewayStatusPort
}

// take stores the answer of a pod, and records the changed providers. The caller holds the lock.
func (p *poller) take(pod types.UID, answer *gateway, changed map[types.UID]bool) {
	p.lastAnswer = answer.answered
	known := p.gateways[pod]
	switch {
	case answer.providers == nil && known != nil:
		known.answered = answer.answered
		return
	case answer.providers == nil:
		return // the gateway was dropped while it was asked
	case known == nil:
		p.noteAll(changed) // a provider may be missing that should be there
	default:
		note(changed, known.providers, answer.providers)
	}
	p.gateways[pod] = answer
}

// noteAll adds all providers to changed. The caller holds the lock.
func (p *poller) noteAll(changed map[types.UID]bool) {
	for uid := range p.objects {
		changed[uid] = true
	}
}

// note adds the providers that differ to changed.
func note(changed map[types.UID]bool, before, after map[types.UID]*providerreport.Provider) {
	for uid, provider := range after {
		if !reflect.DeepEqual(before[uid], provider) {
			changed[uid] = true
		}
	}
	for uid := range before {
		if after[uid] == nil {
			changed[uid] = true
		}
	}
}
