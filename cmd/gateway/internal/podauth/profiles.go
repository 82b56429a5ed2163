// SPDX-License-Identifier: Apache-2.0

package podauth

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/keyrules"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/service"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
)

const (
	// fresh is how long the set of a namespace is used without reading it again.
	fresh = 10 * time.Second
	// maxNamespaces is the maximum number of namespaces whose sets the gateway remembers.
	maxNamespaces = 1024
	// maxPods is the maximum number of pods of a namespace whose sets the gateway remembers while
	// profiles are being rolled out.
	maxPods = 256
)

// profiles has the sets of the namespaces whose pods ask.
type profiles struct {
	kubernetes kubernetes.Interface
	cluster    types.UID
	keys       func(context.Context) ([]ed25519.PublicKey, error)

	mu    sync.Mutex
	known map[string]*namespace
}

// namespace is the signed set of one namespace.
type namespace struct {
	mu   sync.Mutex
	read time.Time // zero if it was never read
	// uid and revision belong to the newest set. An older set is refused while the gateway
	// remembers the namespace.
	uid      types.UID
	revision int64
	file     []byte
	set      *profile.Set
	// pods has the sets of single pods while profiles are being rolled out.
	pods map[string]*profile.Set
}

func (p *profiles) of(name string) *namespace {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.known[name]; n != nil {
		return n
	}
	for other := range p.known {
		if len(p.known) < maxNamespaces {
			break
		}
		delete(p.known, other)
	}
	n := &namespace{}
	p.known[name] = n
	return n
}

// setOf returns the set that the broker of a pod has to serve.
func (p *profiles) setOf(ctx context.Context, pod service.Pod) (*profile.Set, error) {
	n := p.of(pod.Namespace)
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.read) > fresh {
		if err := p.refresh(ctx, pod.Namespace, n); err != nil {
			return nil, err
		}
	}
	if n.set == nil || len(n.set.Rollouts()) == 0 {
		return n.set, nil
	}
	// A rollout has reached only some pods. The UID of a pod decides whether it has reached the
	// pod.
	if set := n.pods[pod.UID]; set != nil {
		return set, nil
	}
	set, _ := profile.Compile(profile.FileName, n.file, profile.Instance(pod.UID))
	if n.pods == nil || len(n.pods) >= maxPods {
		n.pods = map[string]*profile.Set{}
	}
	n.pods[pod.UID] = set
	return set, nil
}

// refresh reads the set of a namespace and verifies its signature. The set is nil if the
// namespace has none. After an error, the namespace is not remembered.
func (p *profiles) refresh(ctx context.Context, name string, n *namespace) error {
	n.read = time.Time{}
	found, err := p.kubernetes.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the namespace %s: %w", name, err)
	}
	if found.UID != n.uid {
		n.uid, n.revision, n.file, n.set, n.pods = found.UID, 0, nil, nil, nil
	}
	stored, err := p.kubernetes.CoreV1().ConfigMaps(name).Get(ctx, v1alpha1.ProfilesConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		n.read, n.file, n.set, n.pods = time.Now(), nil, nil, nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the profiles of the namespace %s: %w", name, err)
	}
	keys, err := p.keys(ctx)
	if err != nil {
		return fmt.Errorf("read the operator's public keys: %w", err)
	}
	file := entry(stored, profile.FileName)
	trust := signed.Trust{Keys: keys, Audience: signing.Audience(p.cluster, found), Lowest: n.revision}
	statement, err := trust.Verify(file, entry(stored, signed.FileName))
	if err != nil {
		return fmt.Errorf("the profiles of the namespace %s: %w", name, err)
	}
	if n.set == nil || n.set.Digest() != statement.Digest {
		set, problems := profile.Compile(profile.FileName, file)
		if set == nil {
			return fmt.Errorf("the profiles of the namespace %s: %w", name, errors.Join(errors.New("none can be used"), problems.Err()))
		}
		n.file, n.set, n.pods = file, set, nil
	}
	n.read, n.revision = time.Now(), statement.Revision
	return nil
}

func entry(stored *corev1.ConfigMap, name string) []byte {
	if text, ok := stored.Data[name]; ok {
		return []byte(text)
	}
	return stored.BinaryData[name]
}

// allowed returns nil if a profile of the set lists the key for the operation by its id.
func allowed(set *profile.Set, namespace string, use service.Use) error {
	refuse := func(format string, args ...any) error {
		return &service.RefusedError{Reason: fmt.Sprintf(format, args...)}
	}
	if set == nil {
		return refuse("the namespace %s has no profiles", namespace)
	}
	found, ok := set.Lookup(use.Profile)
	if !ok {
		return refuse("the namespace %s has no profile %.100q", namespace, use.Profile)
	}
	keys, offered := found.Keys(use.Operation)
	switch {
	case !offered:
		return refuse("the profile %q does not offer %s", use.Profile, use.Operation)
	case slices.Contains(keys.IDs(), use.KeyID) && use.KeyID != keyrules.AnyID:
		return nil
	case slices.Contains(keys.IDs(), keyrules.AnyID):
		return refuse("the profile %q lists %q, which stands for the broker's own keys, expected the key %q by its id", use.Profile, keyrules.AnyID, use.KeyID)
	default:
		return refuse("the profile %q does not list the key %q for %s", use.Profile, use.KeyID, use.Operation)
	}
}
