// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/webhook/internal/fixture"
	"github.com/crypto-broker/crypto-broker-operator/webhook/shares"
	"github.com/crypto-broker/crypto-broker-operator/webhook/validation"
)

// profileHandler is what is served for CryptoProfiles, as Register puts it together.
func profileHandler(tb testing.TB, reader client.Reader) http.Handler {
	tb.Helper()
	handler := validation.Handlers(fixture.Scheme(tb), reader, validation.Options{
		OperatorNamespace: "crypto-broker-system",
		Review: func(context.Context, *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
			tb.Error("a change that makes nothing weaker needs no right")
			return &authorizationv1.SubjectAccessReview{}, nil
		},
	}).CryptoProfile
	return &bounded{
		next:   &admission.Webhook{Handler: brief(ofObjects(handler)), LogConstructor: func(logr.Logger, *admission.Request) logr.Logger { return logr.Discard() }},
		bodies: shares.New(bodyShares), work: shares.New(profileShares), least: leastProfile, wait: maxWait,
	}
}

// changeOf is the request for a change of a profile that makes it stronger.
func changeOf(tb testing.TB, before *v1alpha1.CryptoProfile) []byte {
	tb.Helper()
	after := before.DeepCopy()
	after.Spec.Callers.Containers = after.Spec.Callers.Containers[:1]
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","namespace":%q,"name":%q,"operation":"UPDATE",`+
		`"kind":{"group":"cryptobroker.io","version":"v1alpha1","kind":"CryptoProfile"},"object":%s,"oldObject":%s}}`,
		before.Namespace, before.Name, fixture.JSON(tb, after), fixture.JSON(tb, before))
}

// Both come from the API server's address. Rendering the tenant's set for each of the
// changes would take a second for each.
func TestAPodDoesNotWaitForTheProfilesOfATenant(t *testing.T) {
	shop := fixture.ShopWith(t, 1000, 10)
	profiles, pods := profileHandler(t, shop), podHandler(t)
	pod := reviewOf(string(fixture.JSON(t, fixture.PodWith())))
	var changes atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var noise sync.WaitGroup
	for i := range 100 {
		body := changeOf(t, &shop.Own[i])
		noise.Go(func() {
			for ctx.Err() == nil {
				response := asked(profiles, "192.0.2.1", body)
				if text := response.Body.String(); response.Code == http.StatusOK && !strings.Contains(text, `"allowed":true`) {
					t.Errorf("a change was answered %.300s", text)
				}
				changes.Add(1)
			}
		})
	}
	// The same pods, if they had to wait for their turn among the profiles.
	among := podHandler(t)
	among.(*bounded).work = profiles.(*bounded).work
	var apart, together []time.Duration
	for len(apart) < 20 || changes.Load() < 200 {
		for _, way := range []struct {
			handler http.Handler
			times   *[]time.Duration
		}{{pods, &apart}, {among, &together}} {
			begin := time.Now()
			response := asked(way.handler, "192.0.2.1", pod)
			*way.times = append(*way.times, time.Since(begin))
			if !strings.Contains(response.Body.String(), `"allowed":true`) && way.handler == pods {
				t.Fatalf("a pod was answered %d %s", response.Code, response.Body)
			}
		}
	}
	cancel()
	noise.Wait()
	slices.Sort(apart)
	slices.Sort(together)
	median, waited := apart[len(apart)/2], together[len(together)/2]
	t.Logf("%d pods took %s at the median, and %s among the profiles, beside %d changes of profiles", len(apart), median, waited, changes.Load())
	if median > waited/2 {
		t.Errorf("a pod took %s at the median, expected far less than %s, which it takes if it waits for the profiles", median, waited)
	}
}

// To render the set for each of them would take ten seconds and more.
func TestAProfileAmongAThousandIsAdmittedInAMoment(t *testing.T) {
	shop := fixture.ShopWith(t, 1000, 10)
	handler := profileHandler(t, shop)
	begin := time.Now()
	for i := range 10 {
		if response := asked(handler, "192.0.2.1", changeOf(t, &shop.Own[i])); !strings.Contains(response.Body.String(), `"allowed":true`) {
			t.Fatalf("a change was answered %d %s", response.Code, response.Body)
		}
	}
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("ten changes took %s", took)
	}
}

func BenchmarkProfileAdmission(b *testing.B) {
	log.SetLogger(logr.Discard())
	for _, count := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("%d profiles", count), func(b *testing.B) {
			shop := fixture.ShopWith(b, count, 10)
			handler := profileHandler(b, shop)
			body := changeOf(b, &shop.Own[0])
			for b.Loop() {
				if response := asked(handler, "192.0.2.1", body); response.Code != http.StatusOK {
					b.Fatal(response.Body)
				}
			}
		})
	}
}
