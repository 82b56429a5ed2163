// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const gatewayName = "key-gateway.crypto-broker-system.svc"

// gateways has an operator that issues certificates, and the objects that it has published.
type gateways struct {
	t         *testing.T
	client    client.WithWatch
	clock     *clocktesting.FakeClock
	issuer    *Issuer
	log       bytes.Buffer
	published []byte
}

func newGateways(t *testing.T) *gateways {
	g := &gateways{
		t: t, client: fake.NewClientBuilder().WithScheme(newScheme()).Build(), clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	log := funcr.New(func(prefix, args string) { g.log.WriteString(prefix + " " + args + "\n") }, funcr.Options{Verbosity: 10})
	g.issuer = NewIssuer(g.client, g.clock, log, nil, client.ObjectKey{Namespace: "crypto-broker-system", Name: "key-gateway"})
	return g
}

func (g *gateways) publish(_ context.Context, bundle []byte) error {
	g.published = bundle
	return nil
}

func (g *gateways) renew() (next time.Time) {
	g.t.Helper()
	next, err := g.issuer.Renew(g.t.Context(), g.published, g.publish)
	if err != nil {
		g.t.Fatal(err)
	}
	return next
}

func (g *gateways) secret(name string) *corev1.Secret {
	g.t.Helper()
	secret := &corev1.Secret{}
	if err := g.client.Get(g.t.Context(), client.ObjectKey{Namespace: "crypto-broker-system", Name: name}, secret); err != nil {
		g.t.Fatal(err)
	}
	return secret
}

func (g *gateways) leaf() *x509.Certificate {
	g.t.Helper()
	leaf, err := parseCertificate(g.secret("key-gateway-tls").Data["tls.crt"])
	if err != nil {
		g.t.Fatal(err)
	}
	return leaf
}

// accepts returns why a broker with a bundle refuses a certificate.
func (g *gateways) accepts(leaf *x509.Certificate, bundle []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: gatewayName, CurrentTime: g.clock.Now()})
	return err
}

// The nodes of a cluster learn of changes at different times. In this test of two years, a broker is late by up to 20 hours, or a
// gateway serves a certificate from up to 20 hours before.
func TestBrokersThatAreLateAcceptGatewaysThatAreLate(t *testing.T) {
	const step, late = 20 * time.Hour, 2
	g := newGateways(t)
	var bundles [][]byte
	var leaves, authorities []*x509.Certificate
	for range 2 * 365 * 24 / 20 {
		g.renew()
		bundles, leaves = append(bundles, g.published), append(leaves, g.leaf())
		if current := parseBundle(g.published)[0]; !contains(authorities, current) {
			authorities = append(authorities, current)
		}
		if len(bundles) > late {
			bundles, leaves = bundles[1:], leaves[1:]
		}
		if err := errors.Join(g.accepts(leaves[0], g.published), g.accepts(g.leaf(), bundles[0])); err != nil {
			t.Fatalf("at %s: %v", g.clock.Now(), err)
		}
		g.clock.Step(step)
	}
	if len(authorities) != 3 {
		t.Errorf("%d authorities signed in two years, want 3", len(authorities))
	}
}

func TestTheOperatorMayBeAwayForNineDays(t *testing.T) {
	g := newGateways(t)
	for range 40 {
		if next, now := g.renew(), g.clock.Now(); !next.After(now) {
			t.Fatalf("the next pass is due at %s, before %s", next, now)
		}
		g.clock.Step(9 * 24 * time.Hour)
		if err := g.accepts(g.leaf(), g.published); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACertificateIsRenewedAfterTwoThirdsOfItsTimeAndNotBefore(t *testing.T) {
	g := newGateways(t)
	due := g.clock.Now().Add(settle)
	if next := g.renew(); !next.Equal(due) {
		t.Errorf("the next pass is due at %s, want %s", next, due)
	}
	first := g.leaf()
	g.clock.Step(settle)
	if next, due := g.renew(), renewal(first); !next.Equal(due) {
		t.Errorf("the next pass is due at %s, want %s", next, due)
	}
	g.clock.SetTime(renewal(first).Add(-time.Second))
	g.renew()
	if !g.leaf().Equal(first) {
		t.Error("a certificate was made before its time")
	}
	g.clock.Step(time.Second)
	g.renew()
	if g.leaf().Equal(first) {
		t.Error("no certificate was made at its time")
	}
}

func TestAnAuthorityOfGatewaysThatIsNotValidYetIsReplaced(t *testing.T) {
	g := newGateways(t)
	right := g.clock.Now()
	g.clock.Step(3 * 24 * time.Hour)
	g.renew()
	g.clock.SetTime(right)
	g.renew()
	if err := g.accepts(g.leaf(), g.published); err != nil {
		t.Errorf("brokers refuse the gateway after the operator's clock was set back: %v", err)
	}
}

func TestACertificateOfAGatewayThatIsNotValidYetIsReplaced(t *testing.T) {
	g := newGateways(t)
	right := g.clock.Now()
	g.renew()
	g.clock.SetTime(renewal(g.leaf()))
	g.renew()
	g.clock.SetTime(right)
	g.renew()
	if err := g.accepts(g.leaf(), g.published); err != nil {
		t.Errorf("brokers refuse the gateway after its clock was set back: %v", err)
	}
}

func TestWhatSomebodyDoesToTheSecretsOfAGatewayIsUndone(t *testing.T) {
	broken := []byte("garbage")
	for sentence, test := range map[string]struct {
		do func(*gateways)
		// keeps reports whether the same certificate is served afterwards.
		keeps bool
	}{
		"the certificate is deleted": {do: func(g *gateways) { g.delete("key-gateway-tls") }},
		"the certificate is broken":  {do: func(g *gateways) { g.change("key-gateway-tls", "tls.crt", broken) }},
		"its key is broken":          {do: func(g *gateways) { g.change("key-gateway-tls", "tls.key", broken) }},
		"its authorities are broken": {do: func(g *gateways) { g.change("key-gateway-tls", "ca.crt", broken) }, keeps: true},
		"it is of another authority": {do: func(g *gateways) {
			other := newGateways(g.t)
			other.renew()
			for entry, value := range other.secret("key-gateway-tls").Data {
				g.change("key-gateway-tls", entry, value)
			}
		}},
		// Brokers need time to learn of another authority.
		"the authority is deleted":                   {do: func(g *gateways) { g.delete("key-gateway-ca") }, keeps: true},
		"the authority is broken":                    {do: func(g *gateways) { g.change("key-gateway-ca", "ca.key", broken) }, keeps: true},
		"the published authorities are deleted":      {do: func(g *gateways) { g.published = nil }, keeps: true},
		"the authority is deleted wherever it is":    {do: func(g *gateways) { g.delete("key-gateway-ca"); g.published = nil }},
		"the authority and a certificate are broken": {do: func(g *gateways) { g.delete("key-gateway-ca"); g.delete("key-gateway-tls") }},
	} {
		t.Run(sentence, func(t *testing.T) {
			g := newGateways(t)
			g.renew()
			g.clock.Step(2 * settle)
			g.renew()
			before := g.leaf()
			test.do(g)
			g.renew()
			if kept := g.leaf().Equal(before); kept != test.keeps {
				t.Errorf("the certificate stayed: %t, want %t", kept, test.keeps)
			}
			if err := g.accepts(g.leaf(), g.published); err != nil {
				t.Errorf("a broker refuses the certificate: %v", err)
			}
			data := g.secret("key-gateway-tls").Data
			if len(data) != 3 || !bytes.Equal(data["ca.crt"], g.published) {
				t.Errorf("the Secret has %d entries, and in ca.crt %s", len(data), data["ca.crt"])
			}
			g.clock.Step(settle)
			g.renew()
			if err := g.leaf().CheckSignatureFrom(parseBundle(g.published)[0]); err != nil {
				t.Errorf("a day later, the certificate is not of the present authority: %v", err)
			}
		})
	}
}

func (g *gateways) delete(name string) {
	if err := g.client.Delete(g.t.Context(), g.secret(name)); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gateways) change(name, entry string, value []byte) {
	secret := g.secret(name)
	secret.Data[entry] = value
	if err := g.client.Update(g.t.Context(), secret); err != nil {
		g.t.Fatal(err)
	}
}

func TestNothingIsSignedByAnAuthorityThatIsNotPublished(t *testing.T) {
	g := newGateways(t)
	refused := errors.New("refused")
	for range 3 {
		if _, err := g.issuer.Renew(t.Context(), g.published, func(context.Context, []byte) error { return refused }); !errors.Is(err, refused) {
			t.Fatalf("found %v, want %v", err, refused)
		}
	}
	var secrets corev1.SecretList
	if err := g.client.List(t.Context(), &secrets); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(secrets.Items, func(s corev1.Secret) bool { return s.Name == "key-gateway-tls" }) {
		t.Error("there is a certificate")
	}
	g.renew()
	if err := g.accepts(g.leaf(), g.published); err != nil {
		t.Error(err)
	}
	if bytes.Contains(g.log.Bytes(), []byte("BEGIN")) {
		t.Errorf("the log shows PEM: %s", &g.log)
	}
}

// acceptsClient returns why a gateway with a bundle refuses the certificate of a broker.
func (g *gateways) acceptsClient(leaf *x509.Certificate, bundle []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, CurrentTime: g.clock.Now()})
	return err
}

// signClient returns a certificate for a day, as brokers have.
func (g *gateways) signClient() *x509.Certificate {
	g.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		g.t.Fatal(err)
	}
	now := g.clock.Now()
	leaf, err := g.issuer.SignClient(key.Public(), &url.URL{Scheme: "crypto-broker", Host: "shop", Path: "/web/1"}, now, now.Add(24*time.Hour))
	if err != nil {
		g.t.Fatal(err)
	}
	return leaf
}

// In this test of two years, a gateway is late by up to 20 hours, or a broker has the certificate from 20 hours before.
func TestGatewaysThatAreLateAcceptBrokersThatAreLate(t *testing.T) {
	const step = 20 * time.Hour
	g := newGateways(t)
	var bundle []byte
	var leaf *x509.Certificate
	for range 2 * 365 * 24 / 20 {
		g.renew()
		if leaf != nil {
			if err := errors.Join(g.acceptsClient(leaf, g.published), g.acceptsClient(g.signClient(), bundle)); err != nil {
				t.Fatalf("at %s: %v", g.clock.Now(), err)
			}
		}
		bundle, leaf = g.published, g.signClient()
		g.clock.Step(step)
	}
}

func TestACertificateOfABrokerIsForNothingElseAndEndsWithItsAuthority(t *testing.T) {
	g := newGateways(t)
	if _, err := g.issuer.SignClient(nil, nil, time.Time{}, time.Time{}); !errors.Is(err, ErrNoAuthority) {
		t.Errorf("before the first pass, found %v, want ErrNoAuthority", err)
	}
	g.renew()
	leaf := g.signClient()
	if err := g.accepts(leaf, g.published); err == nil {
		t.Error("a broker accepts it as a gateway's")
	}
	if err := g.acceptsClient(g.leaf(), g.published); err == nil {
		t.Error("a gateway accepts its own certificate as a broker's")
	}
	if leaf.IsCA || len(leaf.URIs) != 1 || leaf.URIs[0].String() != "crypto-broker://shop/web/1" || len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.EmailAddresses) > 0 {
		t.Errorf("found %+v", leaf)
	}
	authority := parseBundle(g.published)[0]
	long, err := g.issuer.SignClient(leaf.PublicKey, leaf.URIs[0], g.clock.Now(), authority.NotAfter.Add(time.Hour))
	if err != nil || !long.NotAfter.Equal(authority.NotAfter) {
		t.Errorf("found an end at %v, error %v, want %s, the end of its authority", long, err, authority.NotAfter)
	}
}

func TestBrokersKeepTheirCertificatesWhenTheSecretOfTheAuthorityIsLost(t *testing.T) {
	g := newGateways(t)
	g.renew()
	before := g.signClient()
	g.delete("key-gateway-ca")
	g.renew()
	if err := errors.Join(g.acceptsClient(before, g.published), g.acceptsClient(g.signClient(), g.published)); err != nil {
		t.Error(err)
	}
}
