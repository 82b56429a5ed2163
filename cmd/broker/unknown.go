// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
)

// variablePrefix begins the names of our environment variables.
const variablePrefix = "CRYPTO_BROKER_"

// serviceLink matches the variables that a kubelet sets in pods for a Service whose name
// begins with "crypto-broker".
var serviceLink = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$`)

// warnOfVariables warns of unknown variables that begin like ours, because a misspelt
// variable has no effect.
func warnOfVariables(environ []string, settings []setting, logger *slog.Logger) {
	known := []string{}
	for _, s := range settings {
		if strings.HasPrefix(s.env, variablePrefix) {
			known = append(known, s.env)
		}
	}
	var unknown []string
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		link := serviceLink.MatchString(name) || strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://")
		if strings.HasPrefix(name, variablePrefix) && !slices.Contains(known, name) && !link {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		attributes := []any{slog.String("variable", name)}
		if near := profile.Nearest(name, known); near != "" {
			attributes = append(attributes, slog.String("suggestion", near))
		}
		logger.Warn("an environment variable begins with "+variablePrefix+" but the broker does not know it, so it has no effect: broker --help lists the known variables", attributes...)
	}
}
