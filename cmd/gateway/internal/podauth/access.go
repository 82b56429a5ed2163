// SPDX-License-Identifier: Apache-2.0

package podauth

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/service"
)

// Access authenticates and authorizes brokers by the objects of the cluster.
type Access struct {
	tokens   *tokens
	profiles *profiles
}

var _ service.Access = (*Access)(nil)

// Options of an access.
type Options struct {
	// Audience is the audience that tokens must have.
	Audience string
	// Keys returns the operator's public keys, with which sets of profiles are signed.
	Keys func(context.Context) ([]ed25519.PublicKey, error)
	// AnyAddress accepts a token from any address, for networks that replace the addresses of
	// pods. By default it has to come from its pod.
	AnyAddress bool
	// HostNetworkPods accepts the token of a pod on the network of its node from any address. By
	// default such a token is refused.
	HostNetworkPods bool
}

// New returns the access of a cluster. It reads the UID of the cluster.
//
// It needs the rights to create tokenreviews, to get namespaces, and to get pods and the ConfigMap
// of profiles in all namespaces.
func New(ctx context.Context, k kubernetes.Interface, o Options) (*Access, error) {
	system, err := k.CoreV1().Namespaces().Get(ctx, contract.SystemNamespace, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the UID of the cluster: %w", err)
	}
	return &Access{newTokens(k, o), &profiles{kubernetes: k, cluster: system.UID, keys: o.Keys, known: map[string]*namespace{}}}, nil
}

// Authenticate implements service.Access.
func (a *Access) Authenticate(ctx context.Context, token string, from netip.Addr) (service.Pod, error) {
	return a.tokens.pod(ctx, token, from)
}

// Authorize implements service.Access.
func (a *Access) Authorize(ctx context.Context, pod service.Pod, use service.Use) error {
	set, err := a.profiles.setOf(ctx, pod)
	if err != nil {
		return err
	}
	return allowed(set, pod.Namespace, use)
}
