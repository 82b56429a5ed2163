// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/installation"
	"github.com/crypto-broker/crypto-broker-operator/cmd/kubectl-crypto_broker/internal/text"
)

const (
	// operatorInterval is the time between two looks at the Lease of the operator.
	operatorInterval = 20 * time.Second
	// leaseSilent is the time without a renewal of the Lease after which the page says so.
	// Leaders renew it every few seconds.
	leaseSilent = time.Minute
)

// followOperator checks that the operator renews its Lease, until the context ends. Without an
// operator, the status of profiles and the numbers of the page do not change.
func (f *Follower) followOperator(ctx context.Context) {
	seen := lease{client: f.Client}
	for {
		looking, stop := context.WithTimeout(ctx, operatorInterval)
		silent := seen.look(looking, time.Now())
		stop()
		if silent != "" {
			silent += " " + text.Plugin + " check" + f.Flags + " says more."
		}
		f.mu.Lock()
		changed := f.silent != silent
		f.silent = silent
		f.mu.Unlock()
		if changed {
			signal(f.profiles)
		}
		if !pause(ctx, operatorInterval, nil) {
			return
		}
	}
}

// lease is the state of the leader's Lease that look has read last.
type lease struct {
	client             kubernetes.Interface
	namespace, version string
	since              time.Time // when look first found this version
}

// look returns a sentence if nobody has renewed the Lease for a minute. Otherwise it returns an
// empty text, even if the user may not read the Lease or if there is none. It measures the time
// between its calls, because the clocks of the user and of the operator may differ.
func (l *lease) look(ctx context.Context, now time.Time) string {
	found, err := installation.Find(ctx, l.client, "")
	if err != nil {
		l.version = ""
		return ""
	}
	read, err := l.client.CoordinationV1().Leases(found.Namespace).Get(ctx, v1alpha1.LeaderElectionLease, metav1.GetOptions{})
	if err != nil {
		l.version = ""
		return ""
	}
	if read.Namespace != l.namespace || read.ResourceVersion != l.version {
		l.namespace, l.version, l.since = read.Namespace, read.ResourceVersion, now
	}
	if now.Sub(l.since) < leaseSilent {
		return ""
	}
	return fmt.Sprintf("The operator seems not to run, so the state of profiles and rollouts may be old: nobody has renewed the Lease %s in namespace %s for a minute.", read.Name, read.Namespace)
}
