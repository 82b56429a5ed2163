// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// Entries of the Secret: the current key, and each retired one by its id.
const (
	currentEntry  = "current.pem"
	retiredPrefix = "retired-"
	retiredSuffix = ".pem"
)

// Annotations of the Secret. The times are in RFC 3339.
const (
	// RotateAnnotation asks for a new key. Its value does not matter. It is removed once the key
	// was made.
	RotateAnnotation = contract.AnnotationPrefix + "rotate-signing-key"

	currentSinceAnnotation = contract.AnnotationPrefix + "signing-key-current-since"
	// retiredSincePrefix is followed by the id of a key.
	retiredSincePrefix = contract.AnnotationPrefix + "signing-key-retired-since-"
)

// pemType is the type of a PKCS #8 private key in PEM.
const pemType = "PRIVATE KEY"

// errNoCurrent means that the Secret has no current key, because somebody has removed it.
var errNoCurrent = errors.New("entry " + currentEntry + " is not there")

// readSecret returns the keys. Errors name entries but never quote them. If the error is
// errNoCurrent, it returns the retired keys.
func readSecret(secret *corev1.Secret) (Ring, error) {
	var r Ring
	var problems []error
	for _, entry := range slices.Sorted(maps.Keys(secret.Data)) {
		id, retired := strings.CutPrefix(entry, retiredPrefix)
		id = strings.TrimSuffix(id, retiredSuffix)
		since := currentSinceAnnotation
		switch {
		case retired && strings.HasSuffix(entry, retiredSuffix):
			since = retiredSincePrefix + id
		case entry != currentEntry:
			problems = append(problems, fmt.Errorf("entry %s is unknown, expected %s, and %s<key id>%s for each retired key", entry, currentEntry, retiredPrefix, retiredSuffix))
			continue
		}
		private, err := readKey(secret.Data[entry])
		if err != nil {
			problems = append(problems, fmt.Errorf("entry %s %w", entry, err))
			continue
		}
		k := keyOf(private, secret.CreationTimestamp.Time)
		if text, ok := secret.Annotations[since]; ok {
			if k.since, err = time.Parse(time.RFC3339, text); err != nil {
				problems = append(problems, fmt.Errorf("annotation %s is %q, expected a time in RFC 3339", since, text))
			}
		}
		switch {
		case !retired:
			r.current = k
		case k.id != id:
			problems = append(problems, fmt.Errorf("entry %s has the key %s, expected the one it is named after", entry, k.id))
		default:
			r.retired = append(r.retired, k)
		}
	}
	for _, k := range r.retired {
		if k.id == r.current.id {
			problems = append(problems, fmt.Errorf("the key %s is in entry %s and among the retired ones, expected it once", k.id, currentEntry))
		}
	}
	if len(problems) == 0 && r.current.private == nil {
		return r, errNoCurrent
	}
	if len(problems) > 0 {
		return Ring{}, errors.Join(problems...)
	}
	return r, nil
}

func readKey(data []byte) (ed25519.PrivateKey, error) {
	const want = "expected one PEM block PRIVATE KEY with an Ed25519 key in PKCS #8"
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return nil, errors.New("has no PEM block, " + want)
	case block.Type != pemType:
		return nil, errors.New("has a PEM block of another type, " + want)
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("has data after its PEM block, " + want)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("is not PKCS #8, " + want)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("has a key of the type %T, %s", parsed, want)
	}
	return private, nil
}

// writeSecret sets the keys of the Secret, and removes all other entries.
func (r Ring) writeSecret(secret *corev1.Secret) error {
	secret.Data = map[string][]byte{}
	for key := range secret.Annotations {
		if strings.HasPrefix(key, retiredSincePrefix) {
			delete(secret.Annotations, key)
		}
	}
	put := func(entry, since string, k key) error {
		der, err := x509.MarshalPKCS8PrivateKey(k.private)
		if err != nil {
			return fmt.Errorf("encode the signing key %s: %w", k.id, err)
		}
		secret.Data[entry] = pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, since, k.since.UTC().Format(time.RFC3339))
		return nil
	}
	if err := put(currentEntry, currentSinceAnnotation, r.current); err != nil {
		return err
	}
	for _, k := range r.retired {
		if err := put(retiredPrefix+k.id+retiredSuffix, retiredSincePrefix+k.id, k); err != nil {
			return err
		}
	}
	return nil
}
