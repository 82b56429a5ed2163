// SPDX-License-Identifier: Apache-2.0

package profileset

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/downgrade"
	"github.com/crypto-broker/crypto-broker-operator/controllers/internal/event"
)

// Reasons and actions of events.
const (
	// eventHeld means that the set of the namespace is not changed, because profiles in it were deleted together with their resource definition.
	eventHeld = "ProfilesHeld"
	// eventReleased means that all profiles of a held set are there again.
	eventReleased = "ProfilesReleased"
	// eventBaselineMissing means that the operator does not know what the namespace served, so the guard waits until each profile is allowed.
	eventBaselineMissing = "BaselineMissing"
	// eventWeakened means that a profile has become weaker, and that this was allowed.
	eventWeakened = "ProfileWeakened"

	actionHold    = "Hold"
	actionCompare = "Compare"
	actionRender  = "Render"
)

// reportWeakened makes an event on each object with an allowed change to a weaker profile that
// was written.
func (r *reconciler) reportWeakened(ctx context.Context, namespace string, changes []downgrade.Change) {
	for _, c := range changes {
		var object client.Object = &v1alpha1.CryptoProfile{}
		if c.Source.Kind == downgrade.KindCluster {
			object = &v1alpha1.ClusterCryptoProfile{}
		}
		key := client.ObjectKey{Namespace: c.Source.Namespace, Name: c.Source.Name}
		if err := r.client.Get(ctx, key, object); err != nil {
			log.FromContext(ctx).Error(err, "a weaker profile was allowed, but the event about it could not be written", "profile", c.Profile, "source", c.Source.String())
			continue
		}
		event.Record(r.recorder, object, corev1.EventTypeWarning, eventWeakened, actionRender, fmt.Sprintf("The profile %q of namespace %q is weaker from now on. Somebody allowed this. %s", c.Profile, namespace, strings.Join(c.Sentences(), " ")))
	}
}
