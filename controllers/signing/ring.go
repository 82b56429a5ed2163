// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

// key is one signing key.
type key struct {
	private ed25519.PrivateKey
	id      string
	// since is the time at which it became current, or at which it was retired.
	since time.Time
}

func newKey(now time.Time) (key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return key{}, fmt.Errorf("make a signing key: %w", err)
	}
	return keyOf(private, now), nil
}

func keyOf(private ed25519.PrivateKey, since time.Time) key {
	return key{private: private, id: signed.KeyID(publicOf(private)), since: since}
}

// publicOf returns the public half of an Ed25519 private key.
func publicOf(private ed25519.PrivateKey) ed25519.PublicKey {
	return ed25519.PublicKey(slices.Clone(private[ed25519.SeedSize:]))
}

// Ring has the keys at one moment. It does not change and is safe for concurrent use. The zero
// value has no keys.
type Ring struct {
	current key
	retired []key // by id
}

// NewRing makes a ring of a current key and retired keys. The operator gets its rings from
// [Keys].
func NewRing(current ed25519.PrivateKey, retired ...ed25519.PrivateKey) Ring {
	r := Ring{current: keyOf(current, time.Time{})}
	for _, private := range retired {
		r.retired = append(r.retired, keyOf(private, time.Time{}))
	}
	return r
}

// Sign signs a statement with all keys, the current one first.
func (r Ring) Sign(statement signed.Statement) ([]byte, error) {
	keys := []ed25519.PrivateKey{r.current.private}
	for _, k := range r.retired {
		keys = append(keys, k.private)
	}
	return signed.Sign(statement, keys...)
}

// Current returns the key that new pods trust.
func (r Ring) Current() ed25519.PublicKey { return publicOf(r.current.private) }

// Known returns all keys. A set without a signature by one of them is not from the operator.
func (r Ring) Known() []ed25519.PublicKey {
	keys := []ed25519.PublicKey{r.Current()}
	for _, k := range r.retired {
		keys = append(keys, publicOf(k.private))
	}
	return keys
}

// Equal reports whether both have the same keys.
func (r Ring) Equal(other Ring) bool {
	return r.current.id == other.current.id &&
		slices.EqualFunc(r.retired, other.retired, func(a, b key) bool { return a.id == b.id })
}

// Audience returns the audience of a namespace's sets. It identifies this namespace of this
// cluster, and no other namespace of the same name. cluster is the UID of the namespace
// kube-system, which identifies the cluster.
func Audience(cluster types.UID, namespace *corev1.Namespace) string {
	return string(cluster) + "/" + namespace.Name + "/" + string(namespace.UID)
}
