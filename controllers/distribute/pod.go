// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"context"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/injected"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// pod has the relevant fields of a pod with a broker.
type pod struct {
	name types.NamespacedName
	uid  types.UID
	// address is the address of the broker's status port. It is zero if the broker must not be
	// asked.
	address netip.AddrPort
	// running is the time at which the broker's container began to run, by the clock of its node,
	// or zero while it does not run.
	running time.Time
	// started is true once the kubelet calls the broker started: it has read
	// its first set.
	started bool
	// instance changes with each restart of the broker's container.
	instance string
	// sealed reports whether the broker takes only signed sets, and reports their revision.
	sealed bool
	// rolls reports whether the broker knows its pod, so that it takes part in rollouts.
	rolls bool
	// annotation is the last written value in the cache.
	annotation string
}

// view reads a pod. It returns false when the pod has no broker that could be behind:
// none at all, or one that ended or is being deleted.
func view(p *corev1.Pod) (pod, bool) {
	if !hasBroker(p) || p.DeletionTimestamp != nil {
		return pod{}, false
	}
	container := injected.Broker(p)
	arguments := container.Args
	_, sealed := contract.ArgumentOf(arguments, contract.TrustedKeysFlag)
	out := pod{
		name:       types.NamespacedName{Namespace: p.Namespace, Name: p.Name},
		uid:        p.UID,
		annotation: p.Annotations[contract.ProfilesDigestAnnotation],
		sealed:     sealed,
		rolls:      len(instanceVariable(container)) > 0,
	}
	if status := injected.BrokerStatus(p); status != nil && status.State.Running != nil {
		out.running = status.State.Running.StartedAt.Time
		out.started = status.Started != nil && *status.Started
		out.instance = status.ContainerID
	}
	if port := contract.StatusPort(arguments); port != 0 && !p.Spec.HostNetwork && p.Status.PodIP != p.Status.HostIP {
		if ip, err := netip.ParseAddr(p.Status.PodIP); err == nil {
			out.address = netip.AddrPortFrom(ip, port)
		}
	}
	return out, true
}

// instanceVariable returns the variable that tells a broker the UID of its pod, nothing where
// there is none, as in pods that earlier versions of the operator injected.
func instanceVariable(container *corev1.Container) []corev1.EnvVar {
	i := slices.IndexFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == contract.InstanceVariable })
	if i < 0 {
		return nil
	}
	return container.Env[i : i+1]
}

// hasBroker reports whether a pod has a broker that has not ended. The pod may be one that is
// being deleted, for which its kubelet updates no volume any more.
func hasBroker(p *corev1.Pod) bool {
	return injected.Broker(p) != nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// Brokers returns how many pods of a namespace have a broker, pods that are being
// deleted included, and how many have one that has ever had a set and can get another,
// as far as the cache behind the reader knows.
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
