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

// Times of a rotation. They are constants and not options, because a rotation is only safe in
// this order.
const (
	// authorityLifetime is how long a certificate authority is valid.
	authorityLifetime = 365 * 24 * time.Hour

	// prepareBefore is the time before the end of an authority at which its successor is made and
	// put into the bundles.
	prepareBefore = 60 * 24 * time.Hour

	// settle is how long a successor has to be in the bundles before it may
	// sign, so that every client has seen it.
	settle = 24 * time.Hour

	// skew is the largest difference between the clocks of servers and clients.
	skew = time.Hour
)

// Options name the Secret of the authority and the objects that have to trust the authority. All
// names are required.
type Options struct {
	// Namespace is the operator's namespace.
	Namespace string

	// SecretName is the name of the Secret in Namespace that keeps the
	// certificate authority. It is made if it does not exist.
	SecretName string

	// ServiceName is the Service in Namespace by which the API server calls the webhooks.
	// Certificates are for the name "<ServiceName>.<Namespace>.svc".
	ServiceName string

	// FurtherNames are DNS names and IP addresses that certificates carry
	// besides the Service's, for webhooks that are reached by a URL.
	FurtherNames []string

	// MutatingConfiguration and ValidatingConfiguration name the
	// MutatingWebhookConfiguration and the ValidatingWebhookConfiguration
	// whose caBundles are kept.
	MutatingConfiguration   string
	ValidatingConfiguration string

	// Clock is the real clock if it is absent. Tests set another one.
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
