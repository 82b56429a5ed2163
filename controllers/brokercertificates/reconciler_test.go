// SPDX-License-Identifier: Apache-2.0

package brokercertificates

import (
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/clock"
)

// The API server admits no such request, so this test does without it.
func TestARequestThatCannotBeReadFailsAndIsNotTriedAgain(t *testing.T) {
	r := &reconciler{options: Options{Clock: clock.RealClock{}}}
	request := &certificatesv1.PodCertificateRequest{Spec: certificatesv1.PodCertificateRequestSpec{StubPKCS10Request: []byte("garbage")}}
	certificate, err := r.decide(request)
	if certificate != nil || err != nil || len(request.Status.Conditions) != 1 || request.Status.Conditions[0].Type != "Failed" || request.Status.Conditions[0].Reason != "UnreadableRequest" {
		t.Errorf("found the certificate %v, the error %v and the conditions %+v", certificate, err, request.Status.Conditions)
	}
}
