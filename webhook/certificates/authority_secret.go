// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/broker/audit"
	"github.com/crypto-broker/crypto-broker-operator/controllers/objectwatch"
)

// authoritySecret is the Secret that stores the certificate authorities of a purpose.
type authoritySecret struct {
	purpose purpose
	client  client.Client
	clock   clock.Clock
	log     logr.Logger
	name    client.ObjectKey
	// audit receives a record of each change. It may be nil.
	audit *audit.Log
}

// advance reads the Secret, advances its state and writes the state if it changed. It makes a
// missing Secret, and repairs a broken one. If the write fails, it returns the error and the
// state that remains in force. It returns no state if that state cannot sign, or if another
// replica wrote first.
//
// known are certificates of bundles. After a loss of the Secret, the certificates among them that
// this package made for the purpose stay trusted for as long as certificates that they have
// signed may be in use. trusted reports whether all bundles have a certificate.
func (s *authoritySecret) advance(ctx context.Context, known []*x509.Certificate, trusted func(*x509.Certificate) bool) (*authorities, error) {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = s.name.Namespace, s.name.Name
	err := s.client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, fmt.Errorf("read the Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}

	now := s.clock.Now()
	state, broken := readSecret(secret, s.purpose)
	if broken != nil {
		s.log.Error(broken, "the Secret of the certificate authority is broken; the operator replaces what cannot be read",
			"namespace", secret.Namespace, "name", secret.Name)
	}
	lost := broken != nil || state.current == nil
	if lost {
		for _, certificate := range known {
			if certificate.Subject.CommonName == s.purpose.authorityName() {
				state.retire(now, certificate)
			}
		}
	}
	current, next := state.current, state.next
	changed, err := state.advance(now, trusted)
	if err != nil {
		return nil, err
	}
	if !changed && !lost {
		return state, nil
	}

	written := secret.DeepCopy()
	if err := state.writeSecret(written); err != nil {
		return nil, err
	}
	if missing {
		written.Type = corev1.SecretTypeOpaque
		err = s.client.Create(ctx, written, client.FieldOwner(fieldManager))
	} else {
		err = s.client.Update(ctx, written, client.FieldOwner(fieldManager))
	}
	if err != nil {
		err = fmt.Errorf("write the Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		state, _ = readSecret(secret, s.purpose)
		if objectwatch.IsRace(err) || state.current == nil || !valid(state.current.certificate, now) {
			return nil, err
		}
		return state, err
	}
	s.record(current, next, state, lost)
	s.log.Info("wrote the certificate authorities", "namespace", secret.Namespace, "name", secret.Name,
		"expiry", state.current.certificate.NotAfter.UTC().Format(time.RFC3339), "successor", state.next != nil, "retired", len(state.retired))
	return state, nil
}
