// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// recordPause is the shortest time between two writes of the record. If the process is
	// killed, changes that it has not written yet are lost.
	recordPause = time.Second

	// recordTimeout bounds the write at the end of a process.
	recordTimeout = 5 * time.Second

	// earlierPause is the shortest time between two writes of the record in the form of earlier
	// versions, which is one large ConfigMap.
	earlierPause = 10 * time.Minute
)

// Record has the namespaces that were ever served, with the last set of each. It is in the
// ConfigMaps of the operator's own namespace that pageOf names, which administrators of other
// namespaces can't write. The operator creates them, so they stay when the chart is uninstalled.
//
// It is written after the sets, so no current set is ever older than the record. Only the leader
// uses it. It is safe for concurrent use.
type Record struct {
	// cached lists the namespaces and writes the pages. live reads the pages from the API server.
	cached    client.Client
	live      client.Reader
	namespace string

	mu sync.Mutex
	// pages are by the name of their ConfigMap, nil until the record was read.
	pages map[string]*page
	// earlier is the record in the form of earlier versions, and earlierWritten is the time at
	// which this process wrote it.
	earlier        *page
	earlierWritten time.Time
	// changed has a value while a write is due.
	changed chan struct{}
}

// New returns the record in a namespace, which is the namespace of the operator. [Record.Of] reads it.
func New(cached client.Client, live client.Reader, namespace string) *Record {
	return &Record{cached: cached, live: live, namespace: namespace, changed: make(chan struct{}, 1)}
}

// Of returns the last set of a namespace. It returns false for a namespace that was never served.
// The first call reads the record.
func (r *Record) Of(ctx context.Context, namespace *corev1.Namespace) (Given, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pages == nil {
		if err := r.load(ctx); err != nil {
			return Given{}, false, err
		}
	}
	last, served := r.pages[pageOf(namespace.UID)].last[namespace.UID]
	return last, served, nil
}

// load reads the record without namespaces that are gone. If the page and the record of an
// earlier version differ, the higher revision counts, because an operator of that version may
// have been installed meanwhile.
func (r *Record) load(ctx context.Context) error {
	var namespaces corev1.NamespaceList
	if err := r.cached.List(ctx, &namespaces); err != nil {
		return fmt.Errorf("list the namespaces: %w", err)
	}
	earlier, err := r.read(ctx, earlierPage, keys)
	if err != nil {
		return err
	}
	pages, stored := map[string]*page{}, map[string]map[types.UID]Given{}
	for _, name := range pageNames() {
		if pages[name], err = r.read(ctx, name, lines); err != nil {
			return err
		}
		stored[name], pages[name].last = pages[name].last, map[types.UID]Given{}
	}
	for i := range namespaces.Items {
		uid := namespaces.Items[i].UID
		p, name := pages[pageOf(uid)], pageOf(uid)
		last, served := stored[name][uid]
		if before, had := earlier.last[uid]; had && (!served || before.Revision > last.Revision) {
			last, served, p.changed = before, true, true
			r.change()
		}
		if served {
			p.last[uid] = last
		}
	}
	r.pages, r.earlier = pages, earlier
	return nil
}

// Note records the set of a namespace, and requests a write of its page.
func (r *Record) Note(namespace *corev1.Namespace, now Given) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pages[pageOf(namespace.UID)]
	if p == nil {
		return // the record was not read
	}
	if last, served := p.last[namespace.UID]; served && last.Revision >= now.Revision {
		return
	}
	p.last[namespace.UID], p.changed = now, true
	r.change()
}

// Drop removes a namespace that is gone. If the process has not read the record yet, Drop does
// nothing, because load leaves out namespaces that are gone.
func (r *Record) Drop(namespace types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pages[pageOf(namespace)]
	if p == nil {
		return
	}
	if _, served := p.last[namespace]; !served {
		return
	}
	delete(p.last, namespace)
	p.changed = true
	r.change()
}

// change requests a write of the pages that changed.
func (r *Record) change() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Run writes changed pages until ctx ends, and once more at the end.
func (r *Record) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
			defer cancel()
			r.write(last)
			r.writeEarlier(last)
			return nil
		case <-r.changed:
			r.write(ctx)
			if time.Since(r.earlierWritten) >= earlierPause {
				r.writeEarlier(ctx)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(recordPause):
		}
	}
}

// write writes the pages that changed. After a failure a page is tried again.
func (r *Record) write(ctx context.Context) {
	for _, p := range r.changedPages() {
		if err := r.put(ctx, p); err != nil {
			log.FromContext(ctx).Error(err, "the record of the sets of namespaces could not be written; if somebody restores an older set while no operator runs, the next operator may not notice that")
			r.mu.Lock()
			p.changed = true
			r.mu.Unlock()
			r.change()
		}
	}
}

func (r *Record) changedPages() (changed []*page) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range pageNames() {
		if p := r.pages[name]; p != nil && p.changed {
			changed = append(changed, p)
		}
	}
	return changed
}

// writeEarlier writes the record for operators of earlier versions, if it fits into their form.
// Without it, they would trust any set of a namespace that was created since the upgrade.
func (r *Record) writeEarlier(ctx context.Context) {
	r.mu.Lock()
	all, p := map[types.UID]Given{}, r.earlier
	for _, each := range r.pages {
		maps.Copy(all, each.last)
	}
	r.mu.Unlock()
	if p == nil || maps.Equal(all, p.last) || len(all) > maxEarlier {
		return
	}
	p.last, r.earlierWritten = all, time.Now()
	if err := r.put(ctx, p); err != nil {
		p.last, r.earlierWritten = nil, time.Time{} // the next change tries again
		log.FromContext(ctx).Error(err, "the record could not be written in the format of earlier versions; an earlier version that is installed again does not know what namespaces have served since the upgrade")
	}
}
