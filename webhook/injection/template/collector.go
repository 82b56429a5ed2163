// SPDX-License-Identifier: Apache-2.0

package template

import (
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"strconv"
	"strings"

	"github.com/crypto-broker/crypto-broker-operator/broker/pemtext"
)

// checkCollector calls report for an endpoint or authorities that a broker cannot use.
func checkCollector(endpoint, caBundle string, grpc bool, report func(field, found, expected string)) {
	if expected := expectedEndpoint(endpoint, grpc); expected != "" {
		report("Endpoint", endpoint, expected)
	}
	if _, found, expected := authoritiesOf(endpoint, caBundle); expected != "" {
		report("CABundle", found, expected)
	}
}

// expectedEndpoint returns the expected form of the endpoint. It is empty if the endpoint can be
// used.
func expectedEndpoint(endpoint string, grpc bool) string {
	const example = "a URL such as http://collector.observability:4317, without user, query, fragment and $"
	u, err := url.Parse(endpoint)
	switch {
	// A dollar sign would refer to a variable in a container's environment.
	case err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Contains(endpoint, "$"):
		return example
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !isPortOrNone(u.Port()) || strings.HasSuffix(u.Host, ":"):
		return example
	case grpc && strings.Trim(u.Path, "/") != "":
		return "one without a path, which gRPC does not have"
	}
	return ""
}

// maxAuthorities is the largest size of a bundle of authorities in bytes, without its comments. Each injected
// pod has the bundle in its environment.
const maxAuthorities = 16 << 10

// authoritiesOf returns the certificates of a bundle in PEM without comments, because a
// container's environment could interpret comments. If the bundle cannot be used, it returns what
// was found, without quoting it, and what was expected.
func authoritiesOf(endpoint, caBundle string) (text, found, expected string) {
	secured := strings.HasPrefix(endpoint, "https://")
	switch {
	case secured && caBundle == "":
		return "", "", "PEM with the certificate authorities of the collector, because the endpoint begins with https:// and the broker's image has no authorities"
	case caBundle == "":
		return "", "", ""
	case !secured:
		return "", "set", "nothing, because the endpoint does not begin with https://"
	}
	var certificates []byte
	for rest := pemtext.WithoutMark([]byte(caBundle)); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return "", "a block " + block.Type, "PEM with only certificates"
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return "", "a block CERTIFICATE that is not a certificate", "PEM with certificates"
		}
		certificates = append(certificates, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	switch begun := strings.Count(caBundle, "-----BEGIN "); {
	case len(certificates) == 0:
		return "", "no certificate", "PEM with the certificate authorities of the collector"
	case begun != strings.Count(string(certificates), "-----BEGIN "):
		return "", "a block that cannot be read", "PEM with only certificates"
	case len(certificates) > maxAuthorities:
		return "", strconv.Itoa(len(certificates)) + " bytes of certificates", "at most " + strconv.Itoa(maxAuthorities)
	}
	return string(certificates), "", ""
}

func isPortOrNone(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && port > 0
}
