// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

const (
	// recordPause is the least time between two writes of the record. What a process
	// that is killed has not written yet is missing from it.
	recordPause = time.Second

	// recordTimeout bounds the write at the end of a process.
	recordTimeout = 5 * time.Second
)

// given is what a namespace was given last: the revision of its set, and the set. A set
// that is found there with a lower revision is old.
type given struct {
	revision int64
	// set is the beginning of the set's digest, empty for no set.
	set string
}

// givenSet returns the part of a digest that is recorded: its first 24 bytes, in base64.
func givenSet(digest string) string {
	sum, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
	if err != nil || len(sum) < givenBytes {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(sum[:givenBytes])
}

const givenBytes = 24

func (g given) String() string { return strings.TrimSpace(fmt.Sprint(g.revision, " ", g.set)) }

// readGiven never fails: a text that can't be read counts as the lowest revision, because
// its namespace was served nevertheless.
func readGiven(text string) (g given) {
	number, set, _ := strings.Cut(text, " ")
	revision, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return given{}
	}
	return given{revision, set}
}

// record says which namespaces were ever served, and what each was given last. It is the
// ConfigMap crypto-broker-profiles of the operator's own namespace, which never gets
// profiles. Administrators of other namespaces can't write it. Each of its keys is the UID
// of a namespace. The operator creates it, so it stays when the chart is uninstalled.
//
// It is written after the sets, so that no set in place is ever older than the record
// says. Only the leader uses it. It is safe for concurrent use.
type record struct {
	// cached lists namespaces, and writes; live reads.
	cached    client.Client
	live      client.Reader
	namespace string

	mu sync.Mutex
	// last is by UID, nil until the record was read.
	last map[types.UID]given
	// version is the resourceVersion of the ConfigMap as it was read or written last.
	version string
	// changed has a value while something is to be written.
	changed chan struct{}
}

func newRecord(cached client.Client, live client.Reader, namespace string) *record {
	return &record{cached: cached, live: live, namespace: namespace, changed: make(chan struct{}, 1)}
}

// of returns what a namespace was given last; false for one that was never served. The
// first call reads the record.
func (r *record) of(ctx context.Context, namespace *corev1.Namespace) (given, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		if err := r.load(ctx); err != nil {
			return given{}, false, err
		}
	}
	last, served := r.last[namespace.UID]
	return last, served, nil
}

// load reads the record, without what it says of namespaces that are gone.
func (r *record) load(ctx context.Context) error {
	found, err := get(ctx, r.live, r.key())
	if err != nil {
		return err
	}
	last := map[types.UID]given{}
	if found != nil {
		var namespaces corev1.NamespaceList
		if err := r.cached.List(ctx, &namespaces); err != nil {
			return fmt.Errorf("listing the namespaces: %w", err)
		}
		for i := range namespaces.Items {
			uid := namespaces.Items[i].UID
			if text, served := found.Data[string(uid)]; served {
				last[uid] = readGiven(text)
			}
		}
		r.version = found.ResourceVersion
	}
	r.last = last
	return nil
}

// note records what a namespace was given, and requests a write of the record.
func (r *record) note(namespace *corev1.Namespace, now given) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, served := r.last[namespace.UID]; served && last.revision >= now.revision || r.last == nil {
		return
	}
	r.last[namespace.UID] = now
	r.change()
}

// drop removes a namespace that is gone. A process that has not read the record yet
// leaves it as it is: what it says of namespaces that are gone is left out when it is
// read.
func (r *record) drop(namespace types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, served := r.last[namespace]; !served {
		return
	}
	delete(r.last, namespace)
	r.change()
}

// change requests a write of the record.
func (r *record) change() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// run writes the record when it changed, until ctx ends, and once more then.
func (r *record) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			select {
			case <-r.changed:
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
				defer cancel()
				r.write(last)
			default:
			}
			return nil
		case <-r.changed:
			r.write(ctx)
		}
		select {
		case <-ctx.Done():
		case <-time.After(recordPause):
		}
	}
}

// write writes what is known into the ConfigMap. After a failure it is tried again.
func (r *record) write(ctx context.Context) {
	r.mu.Lock()
	last := maps.Clone(r.last)
	r.mu.Unlock()
	if err := r.put(ctx, last); err != nil {
		log.FromContext(ctx).Error(err, "the record of what namespaces were given could not be written; a set that is put back while no operator runs may not be noticed", "namespaces", len(last))
		r.change()
	}
}

// put writes unless there is nothing to change. Where the leader before this one wrote
// meanwhile, the higher revision counts.
func (r *record) put(ctx context.Context, last map[types.UID]given) error {
	found, err := get(ctx, r.live, r.key())
	if err != nil {
		return err
	}
	desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: v1alpha1.ProfilesConfigMap, Labels: maps.Clone(configMapLabels)}}
	desired.Labels["app.kubernetes.io/component"] = "record"
	desired.Data = make(map[string]string, len(last))
	var before map[string]string
	if found != nil {
		before, desired.ResourceVersion = found.Data, found.ResourceVersion
	}
	for uid, now := range last {
		if other := readGiven(before[string(uid)]); other.revision > now.revision {
			now = other
		}
		desired.Data[string(uid)] = now.String()
	}
	switch {
	case r.isOlder(found):
		return fmt.Errorf("ConfigMap %s is older than it was, as after the restoration of etcd, and what this process knows is of another past", r.key())
	case found == nil && len(desired.Data) == 0, found != nil && maps.Equal(found.Data, desired.Data):
		return nil
	case found == nil:
		err = r.cached.Create(ctx, desired, client.FieldOwner(v1alpha1.FieldManager))
	default:
		err = r.cached.Update(ctx, desired, client.FieldOwner(v1alpha1.FieldManager))
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("somebody else wrote ConfigMap %s meanwhile: %w", r.key(), err)
	}
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s: %w", r.key(), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version = desired.ResourceVersion
	return nil
}

// isOlder reports whether the ConfigMap is older than the one that this process read or
// wrote last, which happens only where etcd was restored.
func (r *record) isOlder(found *corev1.ConfigMap) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found == nil || r.version == "" {
		return false // one that was deleted is made again
	}
	order, err := resourceversion.CompareResourceVersion(found.ResourceVersion, r.version)
	return err == nil && order < 0
}

func (r *record) key() client.ObjectKey {
	return client.ObjectKey{Namespace: r.namespace, Name: v1alpha1.ProfilesConfigMap}
}
