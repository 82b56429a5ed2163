// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/controllers/objectwatch"
)

// Bounds of the wait for the next pass if nothing changes. The lower bound is for work that is
// due but has to wait, for example until a webhook configuration exists.
const (
	shortestWait = 10 * time.Second
	longestWait  = 5 * time.Minute
)

func (c *Certificates) authoritySecret() *authoritySecret {
	return &authoritySecret{purpose: webhookServing, client: c.client, clock: c.clock, log: c.log, name: client.ObjectKey{Namespace: c.options.Namespace, Name: c.options.SecretName}}
}

// synchronise makes one pass: it makes the Secret, both bundles and this replica's certificate
// current, and returns the time of the next pass.
//
// It reads the configurations before the Secret, and writes them only if they are still as it
// read them. So the Secret that it has read is at least as new as the Secret from which the
// replaced bundle was made. The new bundle has every authority that another replica has just
// added.
func (c *Certificates) synchronise(ctx context.Context) (next time.Time, err error) {
	defer func() {
		if err != nil && !objectwatch.IsRace(err) {
			c.fail(err)
		}
	}()
	configurations := []*configuration{mutating(c.options.MutatingConfiguration), validating(c.options.ValidatingConfiguration)}
	for _, configuration := range configurations {
		if err := configuration.read(ctx, c.client); err != nil {
			return time.Time{}, err
		}
	}
	// Any replica may serve a certificate of an authority that the Secret has lost.
	var known []*x509.Certificate
	if c.leafAuthority != nil {
		known = append(known, c.leafAuthority)
	}
	for _, configuration := range configurations {
		known = append(known, configuration.authorities()...)
	}
	state, err := c.authoritySecret().advance(ctx, known, func(certificate *x509.Certificate) bool {
		return distrust(configurations, certificate) == nil
	})
	if state == nil {
		return time.Time{}, err
	}
	failures := []error{err}

	// The configurations do not depend on each other, so an error of one does not prevent the
	// write of the other.
	bundle := encodeCertificates(state.trusted()...)
	for _, configuration := range configurations {
		changed, err := configuration.write(ctx, c.client, bundle)
		if objectwatch.IsRace(err) {
			return time.Time{}, err
		}
		failures = append(failures, err)
		if changed {
			c.log.Info("wrote the caBundle", "kind", configuration.kind, "name", configuration.object.GetName(), "authorities", len(state.trusted()))
		}
	}

	// A certificate is renewed even after a failed write, if its authority is already trusted.
	signing := state.current
	problem := distrust(configurations, signing.certificate)
	if problem == nil && c.renewalDue(signing.certificate) {
		if err := c.renew(signing); err != nil {
			return time.Time{}, errors.Join(append(failures, err)...)
		}
	}
	if problem != nil && c.leafAuthority != nil {
		// Until the bundles hold the signing authority, they have to hold the
		// authority of the serving certificate.
		problem = distrust(configurations, c.leafAuthority)
	}
	c.report(problem, signing.certificate)
	c.reportMissing(configurations)
	return c.earliest(state), errors.Join(failures...)
}

// distrust returns an error that names the configurations without the certificate, or nil if all
// existing configurations have it. A configuration that does not exist makes no calls, so it is
// an error only if neither exists.
func distrust(configurations []*configuration, certificate *x509.Certificate) error {
	var absent, problems []error
	for _, configuration := range configurations {
		name := configuration.object.GetName()
		switch {
		case configuration.absent:
			absent = append(absent, fmt.Errorf("certificates: the %s %q does not exist, expected one whose caBundle to fill", configuration.kind, name))
		case !configuration.trusts(certificate):
			problems = append(problems, fmt.Errorf("certificates: the caBundle of the %s %q does not hold the certificate authority yet", configuration.kind, name))
		}
	}
	if len(absent) == len(configurations) {
		return errors.Join(absent...)
	}
	return errors.Join(problems...)
}

// renewalDue reports whether a new serving certificate has to be signed.
func (c *Certificates) renewalDue(authority *x509.Certificate) bool {
	if c.leafAuthority == nil || !c.leafAuthority.Equal(authority) {
		return true
	}
	leaf := c.current().Leaf
	if c.clock.Now().Before(leaf.NotBefore) {
		return true // it was signed while the clock was ahead
	}
	if !leaf.NotAfter.Before(authority.NotAfter) {
		// A serving certificate does not outlive its authority, so a new one would expire at the
		// same time.
		return false
	}
	return !c.clock.Now().Before(renewal(leaf))
}

// renewal returns when two thirds of the lifetime of a serving certificate are over.
func renewal(leaf *x509.Certificate) time.Time {
	begin := leaf.NotBefore.Add(skew)
	return begin.Add(leaf.NotAfter.Sub(begin) * 2 / 3)
}

// renew signs a serving certificate and serves it from now on.
func (c *Certificates) renew(signing *authority) error {
	dns, addresses := c.options.names()
	leaf, err := signing.newLeaf(c.clock.Now(), webhookServing, dns, addresses)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.leaf = leaf
	c.mu.Unlock()
	c.leafAuthority = signing.certificate
	c.log.Info("signed a serving certificate", "names", leaf.Leaf.DNSNames, "expiry", leaf.Leaf.NotAfter.UTC().Format(time.RFC3339))
	return nil
}

func (c *Certificates) current() *tls.Certificate {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.leaf
}

// fail stores the error of a pass for Ready. It does so only while there is no serving
// certificate, because an API server that does not answer still trusts a certificate that it
// trusted before.
func (c *Certificates) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaf == nil {
		c.problem = fmt.Errorf("certificates: %w", err)
	}
}

// report passes the result of a pass to Ready, the log and the metrics.
func (c *Certificates) report(problem error, authority *x509.Certificate) {
	c.mu.Lock()
	before := c.problem
	c.problem = problem
	leaf := c.leaf
	c.mu.Unlock()

	if problem != nil && (before == nil || before.Error() != problem.Error()) {
		c.log.Info("the webhooks cannot be called yet", "reason", problem.Error())
	}
	registerExpiry("ca", authority)
	if leaf != nil {
		registerExpiry("leaf", leaf.Leaf)
	}
}

// reportMissing reports in the metrics and the log which configurations do not exist. If neither
// exists, the operator is being installed or removed, and Ready says so.
func (c *Certificates) reportMissing(configurations []*configuration) {
	none := !slices.ContainsFunc(configurations, func(one *configuration) bool { return !one.absent })
	for _, configuration := range configurations {
		isMissing, was := configuration.absent && !none, c.missing[configuration.kind]
		c.missing[configuration.kind] = isMissing
		value := 0.0
		switch name := configuration.object.GetName(); {
		case isMissing && !was:
			c.log.Error(nil, configuration.kind+" is missing: "+configuration.loss+". To restore it, run helm upgrade with the values of the release, or apply the same manifests again.", "name", name)
		case was && !isMissing && !none:
			c.log.Info(configuration.kind+" is there again", "name", name)
		}
		if isMissing {
			value = 1
		}
		configurationMissing.WithLabelValues(configuration.kind).Set(value)
	}
}

// earliest returns the time of the next pass.
func (c *Certificates) earliest(state *authorities) time.Time {
	next := state.deadline()
	if leaf := c.current(); leaf != nil {
		if at := renewal(leaf.Leaf); at.Before(next) {
			next = at
		}
	}
	return next
}
