// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"crypto/x509"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

func TestAKeyIsThatOfACertificateAuthority(t *testing.T) {
	plain := func(c *x509.Certificate) {
		c.IsCA, c.KeyUsage = false, x509.KeyUsageDigitalSignature
	}
	for sentence, test := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"by CA:TRUE in its certificate": {
			map[string]string{"k.key": privatePEM(ecKey), "k.crt": certificate(ecKey, ecKey, func(c *x509.Certificate) { c.KeyUsage = 0 })}, true,
		},
		"by keyCertSign in its certificate": {
			map[string]string{"k.key": privatePEM(ecKey), "k.crt": certificate(ecKey, ecKey, func(c *x509.Certificate) { c.IsCA = false })}, true,
		},
		"by a certificate beside the same key under another id": {
			map[string]string{"k.key": privatePEM(ecKey), "ca.key": privatePEM(ecKey), "ca.crt": certificate(ecKey, ecKey, nil)}, true,
		},
		"by a certificate that lies alone under another id": {
			map[string]string{"k.key": privatePEM(ecKey), "ca.crt": certificate(ecKey, ecKey, nil)}, true,
		},
		"by a certificate of it behind the certificate of another key": {
			map[string]string{
				"k.key": privatePEM(ecKey), "k.crt": certificate(ecKey, ecKey, plain), "leaf.key": privatePEM(otherKey),
				"leaf.crt": certificate(otherKey, ecKey, plain) + certificate(ecKey, ecKey, nil),
			}, true,
		},
		"never without any certificate": {map[string]string{"k.key": privatePEM(ecKey), "ca.key": privatePEM(otherKey), "ca.crt": certificate(otherKey, otherKey, nil)}, false},
		"never by a certificate for signatures alone": {
			map[string]string{"k.key": privatePEM(ecKey), "k.crt": certificate(ecKey, ecKey, plain)}, false,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range test.files {
				write(t, dir+"/"+name, content)
			}
			d := watch(t, dir)
			if event := d.next(); len(event.Problems) > 0 {
				t.Fatal(event.Problems)
			}
			key, err := d.Key(t.Context(), keys.Name{ID: "k"})
			if err != nil {
				t.Fatal(err)
			}
			if key.OfAuthority() != test.want {
				t.Errorf("found %t, want %t", key.OfAuthority(), test.want)
			}
		})
	}
}

func TestAKeyBecomesThatOfACertificateAuthorityWithACertificateThatComesLater(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/k.key", privatePEM(ecKey))
	d := watch(t, dir)
	d.next()
	d.write("ca.crt", certificate(ecKey, ecKey, nil))
	d.next()
	if key, err := d.Key(t.Context(), keys.Name{ID: "k"}); err != nil || !key.OfAuthority() {
		t.Errorf("%v, found a key of nobody's", err)
	}
}
