// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
)

// Results of audit records about certificates.
const (
	// certificateMade is for the first authority. certificatePrepared is for a successor, which
	// becomes the current authority with certificateRotated.
	certificateMade     = "made"
	certificatePrepared = "prepared"
	certificateRotated  = "rotated"
	// certificateRepaired is for a broken Secret that still had its current authority.
	certificateRepaired = "repaired"
	// certificateRemoved is for retired authorities that are not trusted any more. The record has the
	// current one.
	certificateRemoved = "removed"
	// certificateSigned is for a serving certificate, or for the certificate of a pod's broker.
	certificateSigned = "signed"
)

// certificateEvent returns the audit record of a change of a certificate in a Secret.
func certificateEvent(result string, secret client.ObjectKey, certificate *x509.Certificate) *audit.Event {
	return eventOf(result, secret.Namespace, "Secret", secret.Name, certificate)
}

// SignedForPod returns the audit record of a certificate that was signed for a pod.
func SignedForPod(namespace, pod string, certificate *x509.Certificate) *audit.Event {
	return eventOf(certificateSigned, namespace, "Pod", pod, certificate)
}

func eventOf(result, namespace, kind, name string, certificate *x509.Certificate) *audit.Event {
	sum := sha256.Sum256(certificate.Raw)
	return audit.NewEvent("certificate").Text("result", result).
		Text("k8s.namespace.name", namespace).Text("object.kind", kind).Text("object.name", name).
		Text("certificate.sha256", hex.EncodeToString(sum[:])).Text("certificate.expiry", certificate.NotAfter.UTC().Format(time.RFC3339))
}

// record writes audit records of the changes in the Secret of the authorities. current and next
// are its authorities before, and lost reports whether it was missing or broken.
func (s *authoritySecret) record(current, next *authority, state *authorities, lost bool) {
	switch {
	case current == nil:
		s.audit.AddEvent(certificateEvent(certificateMade, s.name, state.current.certificate).Text("reason", "the Secret had none that can be used"))
	case lost:
		s.audit.AddEvent(certificateEvent(certificateRepaired, s.name, state.current.certificate).Text("reason", "a part of the Secret could not be read"))
	case !state.current.certificate.Equal(current.certificate):
		s.audit.AddEvent(certificateEvent(certificateRotated, s.name, state.current.certificate))
	case state.next != nil && next == nil:
		s.audit.AddEvent(certificateEvent(certificatePrepared, s.name, state.next.certificate))
	default:
		s.audit.AddEvent(certificateEvent(certificateRemoved, s.name, state.current.certificate))
	}
}
