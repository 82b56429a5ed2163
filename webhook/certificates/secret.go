// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Entries of the Secret. Every certificate is PEM, every key PKCS #8 in PEM.
const (
	currentCertificateEntry = "ca.crt"
	currentKeyEntry         = "ca.key"
	nextCertificateEntry    = "next-ca.crt"
	nextKeyEntry            = "next-ca.key"
	retiredEntry            = "retired-cas.crt"
)

// retiredUntilAnnotation is the time, in RFC 3339, at which the authorities in
// retiredEntry leave the bundles.
const retiredUntilAnnotation = "cryptobroker.io/retired-until"

// readSecret returns the authorities in the Secret. It leaves broken entries out. The error
// names them, and contains no part of an entry.
func readSecret(secret *corev1.Secret, p purpose) (*authorities, error) {
	state := &authorities{purpose: p}
	var problems []error
	read := func(into **authority, certificateEntry, keyEntry string) {
		if len(secret.Data[certificateEntry]) == 0 && len(secret.Data[keyEntry]) == 0 {
			return
		}
		found, err := parseAuthority(secret.Data[certificateEntry], secret.Data[keyEntry])
		if err != nil {
			problems = append(problems, fmt.Errorf("entries %s and %s: %w", certificateEntry, keyEntry, err))
			return
		}
		*into = found
	}
	read(&state.current, currentCertificateEntry, currentKeyEntry)
	read(&state.next, nextCertificateEntry, nextKeyEntry)

	if data := secret.Data[retiredEntry]; len(data) > 0 {
		state.retired = parseBundle(data)
		if len(state.retired) == 0 {
			problems = append(problems, fmt.Errorf("entry %s: found no certificate authority, expected at least one", retiredEntry))
		}
	}
	if len(state.retired) > 0 {
		until, err := time.Parse(time.RFC3339, secret.Annotations[retiredUntilAnnotation])
		if err != nil {
			problems = append(problems, fmt.Errorf("annotation %s: found %q, expected a time in RFC 3339",
				retiredUntilAnnotation, secret.Annotations[retiredUntilAnnotation]))
			until = time.Time{}
		}
		state.retiredUntil = until
	}
	return state, errors.Join(problems...)
}

// writeSecret puts the state into the Secret and leaves everything else in it
// alone.
func (a *authorities) writeSecret(secret *corev1.Secret) error {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for _, entry := range []struct {
		authority                  *authority
		certificateEntry, keyEntry string
	}{
		{a.current, currentCertificateEntry, currentKeyEntry},
		{a.next, nextCertificateEntry, nextKeyEntry},
	} {
		if entry.authority == nil {
			delete(secret.Data, entry.certificateEntry)
			delete(secret.Data, entry.keyEntry)
			continue
		}
		certificate, key, err := encode(entry.authority.certificate, entry.authority.key)
		if err != nil {
			return err
		}
		secret.Data[entry.certificateEntry], secret.Data[entry.keyEntry] = certificate, key
	}
	if len(a.retired) == 0 {
		delete(secret.Data, retiredEntry)
		delete(secret.Annotations, retiredUntilAnnotation)
		return nil
	}
	secret.Data[retiredEntry] = encodeCertificates(a.retired...)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, retiredUntilAnnotation, a.retiredUntil.UTC().Format(time.RFC3339))
	return nil
}
