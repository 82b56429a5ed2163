// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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

// profileHandler returns the handler for CryptoProfiles, as Register builds it.
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

// changeOf returns a request for a change that makes a profile stronger.
func changeOf(tb testing.TB, before *v1alpha1.CryptoProfile) []byte {
	tb.Helper()
	after := before.DeepCopy()
	after.Spec.Callers.Containers = after.Spec.Callers.Containers[:1]
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","namespace":%q,"name":%q,"operation":"UPDATE",`+
		`"kind":{"group":"cryptobroker.io","version":"v1alpha1","kind":"CryptoProfile"},"object":%s,"oldObject":%s}}`,
		before.Namespace, before.Name, fixture.JSON(tb, after), fixture.JSON(tb, before))
}

// Both requests come from the API server's address.
func TestAPodDoesNotWaitForTheProfilesOfTenants(t *testing.T) {
	profiles, pods := profileHandler(t, fixture.ShopWith(t, 1, 1)).(*bounded), podHandler(t).(*bounded)
	pod := reviewOf(string(fixture.JSON(t, fixture.PodWith())))
	profiles.wait = 50 * time.Millisecond
	arrived, release := make(chan struct{}), make(chan struct{})
	profiles.next = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	})
	var changes sync.WaitGroup
	defer changes.Wait()
	defer close(release)
	for tenant, refused := 0, false; !refused; tenant++ {
		change := fmt.Appendf(nil, `{"request":{"namespace":"tenant-%d"}}`, tenant)
		done := make(chan *httptest.ResponseRecorder, 1)
		changes.Go(func() { done <- asked(profiles, "192.0.2.1", change) })
		select {
		case <-arrived:
		case response := <-done:
			if refused = true; response.Code != http.StatusTooManyRequests {
				t.Fatalf("a change for which there is no room was answered %d %s", response.Code, response.Body)
			}
		}
	}
	if response := asked(pods, "192.0.2.1", pod); !strings.Contains(response.Body.String(), `"allowed":true`) {
		t.Errorf("a pod was answered %d %s", response.Code, response.Body)
	}
	// The same pod, if it had to wait in the queue of the profiles.
	among := podHandler(t).(*bounded)
	among.work, among.least, among.wait = profiles.work, profiles.least, profiles.wait
	if response := asked(among, "192.0.2.1", pod); response.Code != http.StatusTooManyRequests {
		t.Errorf("a pod that shares the room of the profiles was answered %d %s, so this test shows nothing", response.Code, response.Body)
	}
}

// Rendering the set for each of them would take more than ten seconds.
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
