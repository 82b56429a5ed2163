// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
)

// Lifetimes that a rotation is made of. They are constants and not options,
// because their order is what keeps a rotation safe.
const (
	// authorityLifetime is how long a certificate authority is valid.
	authorityLifetime = 365 * 24 * time.Hour

	// prepareBefore is how long before an authority expires its successor is
	// made and put into the bundles.
	prepareBefore = 60 * 24 * time.Hour

	// settle is how long a successor has to be in the bundles before it may
	// sign, so that every client has seen it.
	settle = 24 * time.Hour

	// skew is how far the clocks of servers and clients may be apart.
	skew = time.Hour
)

// Options say where the authority is kept and who has to trust it. All names
// are required.
type Options struct {
	// Namespace is the operator's namespace.
	Namespace string

	// SecretName is the name of the Secret in Namespace that keeps the
	// certificate authority. It is made if it does not exist.
	SecretName string

	// ServiceName is the Service in Namespace by which the API server calls
	// the webhooks; certificates are made out to
	// "<ServiceName>.<Namespace>.svc".
	ServiceName string

	// FurtherNames are DNS names and IP addresses that certificates carry
	// besides the Service's, for webhooks that are reached by a URL.
	FurtherNames []string

	// MutatingConfiguration and ValidatingConfiguration name the
	// MutatingWebhookConfiguration and the ValidatingWebhookConfiguration
	// whose caBundles are kept.
	MutatingConfiguration   string
	ValidatingConfiguration string

	// Clock is the real clock if absent; tests bring another.
	Clock clock.Clock
}

// validate names every option that is missing or cannot be used.
func (o Options) validate() error {
	var problems []error
	for _, required := range []struct{ option, value string }{
		{"Namespace", o.Namespace},
		{"SecretName", o.SecretName},
		{"ServiceName", o.ServiceName},
		{"ValidatingConfiguration", o.ValidatingConfiguration},
	} {
		if required.value == "" {
			problems = append(problems, fmt.Errorf("%s is empty, expected a name", required.option))
		}
	}
	for i, name := range o.FurtherNames {
		if net.ParseIP(name) == nil && len(validation.IsDNS1123Subdomain(name)) > 0 {
			problems = append(problems, fmt.Errorf("FurtherNames[%d] is %q, expected a DNS name or an IP address", i, name))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("certificates: %w", errors.Join(problems...))
	}
	return nil
}

// names returns the DNS names and addresses of a serving certificate.
func (o Options) names() (dns []string, addresses []net.IP) {
	dns = []string{o.ServiceName + "." + o.Namespace + ".svc"}
	for _, name := range o.FurtherNames {
		if ip := net.ParseIP(name); ip != nil {
			addresses = append(addresses, ip)
		} else {
			dns = append(dns, name)
		}
	}
	return dns, addresses
}
