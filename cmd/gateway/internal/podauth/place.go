// SPDX-License-Identifier: Apache-2.0

package podauth

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/service"
)

// place has the addresses from which requests of a pod may come.
type place struct {
	addresses []netip.Addr
	// anywhere reports whether any address is accepted.
	anywhere bool
}

func (p place) has(address netip.Addr) bool {
	return p.anywhere || slices.Contains(p.addresses, address)
}

// placeOf returns the place of a pod. A pod on the network of its node has no address of its own,
// and the network decides which address of the node its requests have.
func (t *tokens) placeOf(ctx context.Context, pod service.Pod) (place, error) {
	if t.options.AnyAddress {
		return place{anywhere: true}, nil
	}
	found, err := t.kubernetes.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && string(found.UID) != pod.UID:
		return place{}, fmt.Errorf("%w: its pod was deleted", service.ErrToken)
	case err != nil:
		return place{}, fmt.Errorf("read the addresses of a pod: %w", err)
	case found.Spec.HostNetwork && !t.options.HostNetworkPods:
		return place{}, fmt.Errorf("%w: its pod is on the network of its node (hostNetwork), so that the token would count from every address; the operator's value keyGateway.hostNetworkPods allows it", service.ErrToken)
	case found.Spec.HostNetwork:
		return place{anywhere: true}, nil
	}
	var at place
	for _, ip := range found.Status.PodIPs {
		if address, err := netip.ParseAddr(ip.IP); err == nil {
			at.addresses = append(at.addresses, address.Unmap())
		}
	}
	if len(at.addresses) == 0 {
		return place{}, fmt.Errorf("the pod %s/%s has no address yet", pod.Namespace, pod.Name)
	}
	return at, nil
}
