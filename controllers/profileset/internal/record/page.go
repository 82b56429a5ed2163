// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
)

const (
	// pageDigits are the first digits of UIDs. Each digit has its own page, so a change writes a
	// sixteenth of the record.
	pageDigits = "0123456789abcdef"

	// pageKey is the key of a page's ConfigMap. Its value has a line for each namespace:
	// the UID, the revision, and the beginning of the set's digest. At 84 bytes for each
	// of them, a ConfigMap of 1 MiB has room for 12,400, and the record for 199,000.
	pageKey = "namespaces"

	// earlierPage is the ConfigMap in which operators before this version keep the whole
	// record. It never has the set of a namespace, because the operator's own namespace
	// gets no profiles.
	earlierPage = v1alpha1.ProfilesConfigMap

	// maxEarlier is the maximum number of namespaces for which that ConfigMap has room.
	maxEarlier = 11_000
)

// pageLabels are the labels of the ConfigMaps.
var pageLabels = map[string]string{
	"app.kubernetes.io/name":       "crypto-broker",
	"app.kubernetes.io/component":  "record",
	"app.kubernetes.io/part-of":    "crypto-broker",
	"app.kubernetes.io/managed-by": v1alpha1.FieldManager,
}

// Given is the last set that a namespace was given. A set that is found with a lower
// revision is old.
type Given struct {
	Revision int64
	// Set is the beginning of the set's digest, empty for no set.
	Set string
}

// Beginning returns the part of a digest that is recorded: its first 24 bytes, in base64.
func Beginning(digest string) string {
	sum, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
	if err != nil || len(sum) < givenBytes {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(sum[:givenBytes])
}

const givenBytes = 24

func (g Given) String() string { return strings.TrimSpace(fmt.Sprint(g.Revision, " ", g.Set)) }

// readGiven never fails. A text that cannot be read counts as the lowest revision, because its
// namespace has been served.
func readGiven(text string) (g Given) {
	number, set, _ := strings.Cut(text, " ")
	revision, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return Given{}
	}
	return Given{revision, set}
}

// page is one ConfigMap of the record.
type page struct {
	name string
	form form
	// last has the last sets of the namespaces of the page, by UID.
	last map[types.UID]Given
	// version is the resourceVersion of the ConfigMap when it was last read or written. It is
	// empty if there is no ConfigMap.
	version string
	// changed reports whether the ConfigMap lacks a change of last.
	changed bool
}

// pageOf returns the name of the ConfigMap for a namespace.
func pageOf(namespace types.UID) string {
	if namespace == "" || !strings.Contains(pageDigits, string(namespace[:1])) {
		return v1alpha1.RecordConfigMapPrefix + pageDigits[:1]
	}
	return v1alpha1.RecordConfigMapPrefix + string(namespace[:1])
}

// pageNames returns the names of all pages, in their order.
func pageNames() (names []string) {
	for _, digit := range pageDigits {
		names = append(names, v1alpha1.RecordConfigMapPrefix+string(digit))
	}
	return names
}

// form is the form of a page in a ConfigMap.
type form struct {
	write func(map[types.UID]Given) map[string]string
	read  func(map[string]string) map[types.UID]Given
}

// lines is the form of pages. A line without a readable revision still means that its namespace
// has been served.
var lines = form{
	write: func(last map[types.UID]Given) map[string]string {
		var text strings.Builder
		for _, uid := range slices.Sorted(maps.Keys(last)) {
			fmt.Fprintln(&text, uid, last[uid])
		}
		return map[string]string{pageKey: text.String()}
	},
	read: func(data map[string]string) map[types.UID]Given {
		last := map[types.UID]Given{}
		for line := range strings.Lines(data[pageKey]) {
			if uid, text, _ := strings.Cut(strings.TrimSpace(line), " "); uid != "" {
				last[types.UID(uid)] = readGiven(text)
			}
		}
		return last
	},
}

// keys is the form of earlier versions: each key is the UID of a namespace.
var keys = form{
	write: func(last map[types.UID]Given) map[string]string {
		data := make(map[string]string, len(last))
		for uid, now := range last {
			data[string(uid)] = now.String()
		}
		return data
	},
	read: func(data map[string]string) map[types.UID]Given {
		last := make(map[types.UID]Given, len(data))
		for uid, text := range data {
			last[types.UID(uid)] = readGiven(text)
		}
		return last
	},
}

// read reads a page, which is empty if there is no ConfigMap.
func (r *Record) read(ctx context.Context, name string, form form) (*page, error) {
	found, err := r.get(ctx, name)
	if err != nil {
		return nil, err
	}
	p := &page{name: name, form: form, last: map[types.UID]Given{}}
	if found != nil {
		p.last, p.version = form.read(found.Data), found.ResourceVersion
	}
	return p, nil
}

// put writes a page. If another process wrote or deleted its ConfigMap meanwhile, such as the
// leader before this one, the higher revision of each namespace counts.
func (r *Record) put(ctx context.Context, p *page) error {
	r.mu.Lock()
	last, version := maps.Clone(p.last), p.version
	p.changed = false
	r.mu.Unlock()
	written, err := r.store(ctx, p, last, version)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		found, unread := r.get(ctx, p.name)
		switch {
		case unread != nil:
			return unread
		case found == nil:
			version = ""
		case isOlder(found.ResourceVersion, version):
			return fmt.Errorf("ConfigMap %s is older than it was: etcd was restored, so what this process remembers may be wrong", r.key(p.name))
		default:
			last, version = r.merge(p, found), found.ResourceVersion
		}
		written, err = r.store(ctx, p, last, version)
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", r.key(p.name), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p.version = written
	return nil
}

// merge merges the changes of another process into a page, and returns the result.
func (r *Record) merge(p *page, found *corev1.ConfigMap) map[types.UID]Given {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, other := range p.form.read(found.Data) {
		if now, known := p.last[uid]; !known || other.Revision > now.Revision {
			p.last[uid] = other
		}
	}
	return maps.Clone(p.last)
}

// store writes a ConfigMap if it still has this version, or creates it if version is empty. It
// returns the new version.
func (r *Record) store(ctx context.Context, p *page, last map[types.UID]Given, version string) (string, error) {
	c := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: p.name, ResourceVersion: version, Labels: maps.Clone(pageLabels)},
		Data:       p.form.write(last),
	}
	write := func() error { return r.cached.Update(ctx, c, client.FieldOwner(v1alpha1.FieldManager)) }
	if version == "" {
		write = func() error { return r.cached.Create(ctx, c, client.FieldOwner(v1alpha1.FieldManager)) }
	}
	err := write()
	return c.ResourceVersion, err
}

// isOlder reports whether a ConfigMap is older than this process has seen it. That happens only
// if etcd was restored.
func isOlder(found, seen string) bool {
	order, err := resourceversion.CompareResourceVersion(found, seen)
	return err == nil && order < 0
}

func (r *Record) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.namespace, Name: name}
}

// get returns a ConfigMap of the record, or nil if there is none.
func (r *Record) get(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	var found corev1.ConfigMap
	if err := r.live.Get(ctx, r.key(name), &found); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", r.key(name), err)
	}
	return &found, nil
}
