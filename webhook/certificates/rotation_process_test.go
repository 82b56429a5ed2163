// SPDX-License-Identifier: Apache-2.0

//go:build process

package certificates

import (
	"errors"
	"maps"
	"math/rand/v2"
	"testing"
	"time"
)

// Two replicas go through two rotations. Every six hours one or both of them make a pass. Their certificates then have to be
// accepted by an API server with the present bundles, and by one with the bundles from six hours before.
func TestEveryCertificateServedDuringRotationsIsAccepted(t *testing.T) {
	const step = 6 * time.Hour
	random := rand.New(rand.NewPCG(1, 2))
	w := newTestCluster(webhookConfigurations()...)
	replicas := []*Certificates{w.replica(w.client), w.replica(w.client)}
	for _, replica := range replicas {
		pass(t, replica)
	}

	var behind map[string]string
	cutOff := []int{0, 0} // for how many steps more
	shaken := map[string]bool{}
	seen := map[string]bool{}
	for range int(2*authorityLifetime/step) + 130 {
		first := random.IntN(2)
		absent := [2]bool{}
		for _, i := range []int{first, 1 - first} {
			if cutOff[i] > 0 {
				cutOff[i]--
				absent[i] = true
				continue
			}
			pass(t, replicas[i])
			// Now and then a replica can't reach the API server, sometimes
			// for longer than its certificate lives.
			if random.IntN(100) == 0 {
				cutOff[i] = random.IntN(15)
			}
		}
		now := w.views(t)
		views := map[string]string{}
		for bundle, webhook := range behind {
			views[bundle] = webhook + " six hours ago"
		}
		maps.Copy(views, now)
		for i, replica := range replicas {
			for bundle, name := range views {
				err := w.accepts(replica, []byte(bundle))
				if errors.Is(err, errServesNothing) && absent[i] {
					continue
				}
				if err != nil {
					t.Fatalf("%s: %s refuses replica %d: %v", w.clock.Now(), name, i, err)
				}
				// A handshake takes long, so the test makes only one for each pair of certificate and bundle.
				pair := string(replica.current().Certificate[0]) + bundle
				if shaken[pair] {
					continue
				}
				shaken[pair] = true
				if err := w.handshake(t.Context(), replica, []byte(bundle)); err != nil {
					t.Fatalf("%s: %s can't call replica %d: %v", w.clock.Now(), name, i, err)
				}
			}
		}
		seen[string(w.authorities(t).current.certificate.Raw)] = true
		behind = now
		w.clock.Step(step)
	}

	if len(seen) != 3 {
		t.Errorf("%d authorities signed in two years, expected 3", len(seen))
	}
	state := w.authorities(t)
	if state.next != nil || len(state.retired) != 0 {
		t.Errorf("found a successor (%t) and %d retired authorities long after a rotation, expected none", state.next != nil, len(state.retired))
	}
}
