// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/controllers/changetrace"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/queue"
)

// How many annotations are written and how many brokers are asked at a time.
// Writing loads the API server, asking the network. A slow API server serves 8 writers as
// fast as 32, and answers other requests sooner, such as the operator's for its lease. A
// broker that doesn't answer occupies a worker for a second. While brokers wait that did
// answer, no worker takes one that didn't: see priority.
const (
	writeWorkers = 8
	askWorkers   = 128
)

// Names of the two controllers, in logs and metrics.
const (
	writingName = "pod-annotation"
	askingName  = "broker-confirmation"
)

// Options configure a Distributor.
type Options struct {
	// Annotate reports whether pods are annotated to make their kubelets refresh the
	// profiles at once. Otherwise a set arrives with the kubelets' own resync.
	Annotate bool
	// Ask asks a broker, usually (*confirm.Client).Ask.
	Ask func(context.Context, netip.AddrPort) (confirm.Answer, error)
	// Outdated reports whether a pod's broker differs from the broker that a new pod would
	// get. It is nil if that is not known.
	Outdated func(*corev1.Pod) bool
	// Changed is called when the Summary of a namespace may have changed. It
	// must not block and must not call the Distributor.
	Changed func(namespace string)
	// RevisionAhead is called when a broker reports a higher revision than the target of
	// its namespace has. The broker will not go back to the lower revision. RevisionAhead
	// may be nil. It must not block and must not call the Distributor.
	RevisionAhead func(namespace string)
	// Traces follows changes of profiles to their last broker, nil for no traces.
	Traces *changetrace.Tracer
}

// Distributor brings sets into brokers. Its methods are safe for concurrent use.
type Distributor struct {
	options Options
	client  client.Reader
	pods    rest.Interface // see podClient
	writing queue.Queue
	asking  queue.Queue

	mu         sync.Mutex
	namespaces map[string]*namespace
	brokers    int // of all namespaces
}

// namespace is what is known of a namespace.
type namespace struct {
	target  Target
	brokers map[string]*broker // by name of the pod
	// listed is true once all of its brokers were in brokers. Before, those that were
	// not observed yet would be missing from its numbers.
	listed bool
}

// Setup adds a Distributor to the manager. Its cache must strip pods by
// StripPod.
func Setup(mgr ctrl.Manager, options Options) (*Distributor, error) {
	pods, err := podClient(mgr.GetConfig(), mgr.GetScheme(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	d := &Distributor{
		options:    options,
		client:     mgr.GetClient(),
		pods:       pods,
		writing:    queue.New(writingName),
		asking:     queue.New(askingName),
		namespaces: map[string]*namespace{},
	}
	write := queue.Options(d.writing, writeWorkers)
	write.Reconciler = reconcile.Func(d.write)
	if _, err := controller.New(writingName, mgr, write); err != nil {
		return nil, err
	}
	return d, ctrl.NewControllerManagedBy(mgr).
		Named(askingName).
		Watches(&corev1.Pod{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(podChanged)).
		WithOptions(queue.Options(d.asking, askWorkers)).
		Complete(reconcile.Func(d.ask))
}

// SetTarget sets the set that the brokers of a namespace should serve, and starts at
// once to bring it to them. It returns an error if their pods can't be listed.
func (d *Distributor) SetTarget(ctx context.Context, name string, target Target) error {
	d.mu.Lock()
	ns := d.namespace(name)
	if ns.target == target {
		d.mu.Unlock()
		return nil
	}
	observed := slices.Collect(maps.Values(ns.brokers))
	if err := d.list(ctx, name, ns); err != nil {
		d.mu.Unlock()
		return err
	}
	ns.target = target
	requests := map[int][]reconcile.Request{}
	for _, b := range ns.brokers {
		b.setTarget(target)
	}
	for _, b := range observed {
		b.reported = b.class(time.Now()) // the caller reports it
		requests[b.priority()] = append(requests[b.priority()], reconcile.Request{NamespacedName: b.pod.name})
	}
	d.mu.Unlock()
	for priority, some := range requests {
		d.writing.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, some...)
	}
	d.options.Changed(name)
	return nil
}

// list adds the brokers of a namespace that were not observed yet, once. After a change
// of leader it takes seconds until thousands of pods are observed, and numbers without
// them would be written into statuses. The watch has a request for each of them. The
// caller holds d.mu.
func (d *Distributor) list(ctx context.Context, name string, ns *namespace) error {
	if ns.listed {
		return nil
	}
	var pods corev1.PodList
	if err := d.client.List(ctx, &pods, client.InNamespace(name), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods.Items {
		if seen, ok := view(&pods.Items[i]); ok {
			d.see(ns, &pods.Items[i], seen)
		}
	}
	ns.listed = true
	return nil
}

// Revision returns the highest revision that brokers of a namespace say they serve.
func (d *Distributor) Revision(name string) (highest int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ns, ok := d.namespaces[name]; ok {
		for _, b := range ns.brokers {
			if b.known && b.pod.sealed {
				highest = max(highest, b.answer.Revision)
			}
		}
	}
	return highest
}

// Forget drops what is known of a namespace that is gone or gets no profiles.
func (d *Distributor) Forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ns, ok := d.namespaces[name]; ok {
		ns.target = Target{}
		for _, b := range ns.brokers {
			b.setTarget(Target{})
		}
		d.drop(name, ns)
	}
	d.options.Traces.Forget(name)
}

// podChanged ignores events that make no difference to a broker.
var podChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool {
		_, has := view(e.Object.(*corev1.Pod))
		return has
	},
	UpdateFunc: func(e event.UpdateEvent) bool {
		return concernsBroker(e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod))
	},
	DeleteFunc: func(e event.DeleteEvent) bool {
		return injected.Broker(e.Object.(*corev1.Pod)) != nil
	},
}

// concernsBroker reports whether a change of a pod makes a difference to its broker.
func concernsBroker(before, after *corev1.Pod) bool {
	old, had := view(before)
	now, has := view(after)
	old.annotation, now.annotation = "", "" // written by us
	return had != has || old != now
}

// observe updates what is known of a pod from the cache. It returns the pod's broker,
// nil when there is none or none any more. The caller holds d.mu.
func (d *Distributor) observe(ctx context.Context, name types.NamespacedName) (*broker, error) {
	var object corev1.Pod
	err := d.client.Get(ctx, name, &object, client.UnsafeDisableDeepCopy) // it is only read
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	seen, ok := view(&object)
	if err != nil || !ok {
		if ns, known := d.namespaces[name.Namespace]; known {
			d.brokers -= len(ns.brokers)
			delete(ns.brokers, name.Name)
			d.brokers += len(ns.brokers)
			d.drop(name.Namespace, ns)
			d.options.Traces.Left(name)
			d.options.Changed(name.Namespace)
		}
		return nil, nil
	}
	b, isNew := d.see(d.namespace(name.Namespace), &object, seen)
	if isNew {
		d.options.Changed(name.Namespace)
	}
	return b, nil
}

// see updates what is known of a pod with a broker. The caller holds d.mu.
func (d *Distributor) see(ns *namespace, object *corev1.Pod, seen pod) (b *broker, isNew bool) {
	b, had := ns.brokers[object.Name]
	if !had {
		b = &broker{annotates: d.options.Annotate}
		ns.brokers[object.Name] = b
		d.brokers++
	} else if b.pod.uid != seen.uid {
		d.options.Traces.Left(seen.name) // another pod has its name
	}
	b.setTarget(ns.target)
	b.setPod(seen, time.Now())
	b.outdated = d.options.Outdated != nil && d.options.Outdated(object)
	return b, !had
}

// namespace returns what is known of a namespace. The caller holds d.mu.
func (d *Distributor) namespace(name string) *namespace {
	ns, ok := d.namespaces[name]
	if !ok {
		ns = &namespace{brokers: map[string]*broker{}}
		d.namespaces[name] = ns
	}
	return ns
}

// drop removes a namespace if nothing is known of it. The caller holds d.mu.
func (d *Distributor) drop(name string, ns *namespace) {
	if len(ns.brokers) == 0 && ns.target == (Target{}) {
		delete(d.namespaces, name)
	}
}
