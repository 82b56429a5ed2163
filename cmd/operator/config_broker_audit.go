// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/pflag"

// The flags about the audit records of brokers.
const (
	brokerAuditEndpointFlag = "broker-audit-endpoint"
	brokerAuditBundleFlag   = "broker-audit-ca-bundle"
)

func (c *config) brokerAuditFlags(f *pflag.FlagSet) {
	f.StringVar(&c.brokerAudit.Endpoint, brokerAuditEndpointFlag, "", "`url` of the OpenTelemetry collector that gets the audit records of brokers by OTLP over gRPC, which begins with http:// or https://; records are lines of standard error if empty")
	f.StringVar(&c.brokerAudit.CABundle, brokerAuditBundleFlag, "", "certificate authorities of a --broker-audit-endpoint that begins with https://, as `PEM`, which brokers get with their pods")
}

func (c *config) checkBrokerAudit(problem func(flag, found, expected string)) {
	flags := map[string]string{"Endpoint": brokerAuditEndpointFlag, "CABundle": brokerAuditBundleFlag}
	c.brokerAudit.Check(func(field, found, expected string) { problem(flags[field], found, expected) })
}
