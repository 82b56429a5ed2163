// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/confirm"
)

// statusAddressArgument is the argument of the broker's container that opens
// the status port.
const statusAddressArgument = "--status-address"

// pod is what counts of a pod with a broker.
type pod struct {
	name types.NamespacedName
	uid  types.UID
	// address is the broker's status port; the zero value where the broker
	// must not be asked.
	address netip.AddrPort
	// running is when the broker's container began to run, zero while it does
	// not.
	running time.Time
	// started is true once the kubelet calls the broker started: it has read
	// its first set.
	started bool
	// instance changes with each restart of the broker's container.
	instance string
	// sealed is whether the broker takes signed sets only, and tells their revision.
	sealed bool
	// annotation is the value that was written last, as far as the cache knows.
	annotation string
}

// trustedKeysArgument is the argument with the keys that signed sets need.
const trustedKeysArgument = "--trusted-keys="

// view reads a pod; false when it has no broker that could be behind: none at
// all, or one that ended or is being ended.
func view(p *corev1.Pod) (pod, bool) {
	i := slices.IndexFunc(p.Spec.InitContainers, isBroker)
	if !hasBroker(p) || p.DeletionTimestamp != nil {
		return pod{}, false
	}
	out := pod{
		name:       types.NamespacedName{Namespace: p.Namespace, Name: p.Name},
		uid:        p.UID,
		annotation: p.Annotations[v1alpha1.ProfilesDigestAnnotation],
		sealed: slices.ContainsFunc(p.Spec.InitContainers[i].Args, func(argument string) bool {
			return strings.HasPrefix(argument, trustedKeysArgument)
		}),
	}
	for _, status := range p.Status.InitContainerStatuses {
		if status.Name != v1alpha1.BrokerContainer || status.State.Running == nil {
			continue
		}
		out.running = status.State.Running.StartedAt.Time
		out.started = status.Started != nil && *status.Started
		out.instance = status.ContainerID
	}
	if port := statusPort(p.Spec.InitContainers[i].Args); port >= confirm.MinPort && !p.Spec.HostNetwork && p.Status.PodIP != p.Status.HostIP {
		if ip, err := netip.ParseAddr(p.Status.PodIP); err == nil {
			out.address = netip.AddrPortFrom(ip, port)
		}
	}
	return out, true
}

// hasBroker tells whether a pod has a broker that has not ended, though it may be
// being ended: a kubelet no longer brings anything new into it then.
func hasBroker(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, isBroker) && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// statusPort is the port in the broker's arguments, 0 where it is off or can't
// be read. Like the broker, it takes the last one.
func statusPort(args []string) uint16 {
	address := ""
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, statusAddressArgument+"="):
			address = strings.TrimPrefix(arg, statusAddressArgument+"=")
		case arg == statusAddressArgument && i+1 < len(args):
			address = args[i+1]
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "" { // bound to one address: not for us
		return 0
	}
	parsed, err := netip.ParseAddrPort("0.0.0.0:" + port)
	if err != nil {
		return 0
	}
	return parsed.Port()
}

// Brokers tells how many pods of a namespace have a broker, those that are being
// ended included, and how many have one that has ever had a set and can get
// another, as far as the cache behind the reader knows.
func Brokers(ctx context.Context, reader client.Reader, namespace string) (all, started int, err error) {
	var pods corev1.PodList
	if err := reader.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return 0, 0, err
	}
	for i := range pods.Items {
		if hasBroker(&pods.Items[i]) {
			all++
		}
		if p, ok := view(&pods.Items[i]); ok && p.started {
			started++
		}
	}
	return all, started, nil
}
