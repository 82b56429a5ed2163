// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/podauth"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/logs"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/logs/libraries"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
)

// config has the settings of the command line.
type config struct {
	address       string
	statusAddress string
	// certificates is the directory with the serving certificate.
	certificates string
	// trustedKeys is a file.
	trustedKeys string
	// brokerAuthorities is a file, empty if brokers need no certificate.
	brokerAuthorities string
	audience          string
	checkPodAddress   bool
	hostNetworkPods   bool
	operatorNamespace string
	shutdownDelay     time.Duration
	tlsProvider       string
	logLevel          string

	// level is the parsed logLevel.
	level slog.Level
}

// flags binds the command line to the config, with the defaults.
func (c *config) flags() *pflag.FlagSet {
	f := program.Flags("gateway")
	f.StringVar(&c.address, "bind-address", ":8443", "`address` of the port for brokers, with TLS 1.3")
	f.StringVar(&c.statusAddress, "status-bind-address", ":8081", "`address` of the HTTP port with /healthz, /readyz and /metrics; 0 is off")
	f.StringVar(&c.certificates, "certificate-dir", "", "`directory` with tls.crt and tls.key of the gateway in PEM, which another program renews; read again when they change; required")
	f.StringVar(&c.trustedKeys, "trusted-keys-file", "", "`file` with the operator's public keys, each ed25519: and base64, with commas or line breaks between them; only sets of profiles with a signature by one of them are used; read again for each set; required")
	f.StringVar(&c.brokerAuthorities, "broker-authorities-file", "", "`file` with the authorities of the certificates of brokers in PEM; brokers then need a certificate of their pod; read again for each connection; no certificate is needed if empty")
	f.StringVar(&c.audience, "audience", podauth.Audience, "`audience` that the tokens of pods must have")
	f.BoolVar(&c.checkPodAddress, "check-pod-address", true, "accept the token of a pod only from an address of the pod; false is for networks that replace the addresses of pods")
	f.BoolVar(&c.hostNetworkPods, "host-network-pods", false, "let pods on the network of their node use the gateway; they have no address of their own, so their tokens are accepted from every address")
	f.StringVar(&c.operatorNamespace, "operator-namespace", "", "`namespace` of the operator, which has the Secrets of ClusterKeyProviders [POD_NAMESPACE]")
	f.DurationVar(&c.shutdownDelay, "shutdown-delay", 5*time.Second, "how long the gateway still serves after the signal to end, so that nodes learn that it is no longer an endpoint of its Service")
	f.StringVar(&c.tlsProvider, "tls-provider", tlsprovider.Go, "`provider` of TLS for the connections to key managers: go, or openssl for the OpenSSL of the system, which only programs of make build-openssl have")
	f.StringVar(&c.logLevel, "log-level", "info", "log `level`: debug, info, warn or error")
	return f
}

// parse reads the command line and checks it. The error has a sentence for each problem.
func parse(args []string, lookup func(string) (string, bool)) (*config, error) {
	c := &config{}
	f := c.flags()
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q, expected flags only", f.Arg(0))
	}
	if c.operatorNamespace == "" {
		c.operatorNamespace, _ = lookup("POD_NAMESPACE")
	}
	return c, c.check()
}

func (c *config) check() error {
	var problems []error
	expect := func(ok bool, flag, found, expected string) {
		if !ok {
			problems = append(problems, fmt.Errorf("--%s is %q, expected %s", flag, found, expected))
		}
	}
	expect(isAddress(c.address), "bind-address", c.address, `an address with a port such as ":8443"`)
	expect(c.statusAddress == "0" || isAddress(c.statusAddress), "status-bind-address", c.statusAddress, `an address with a port such as ":8081", or 0 for none`)
	expect(c.certificates != "", "certificate-dir", "", "the directory of tls.crt and tls.key")
	expect(c.audience != "", "audience", "", "the audience of the tokens of pods, such as "+podauth.Audience)
	expect(len(validation.IsDNS1123Label(c.operatorNamespace)) == 0, "operator-namespace", c.operatorNamespace, "the name of the operator's namespace (or set POD_NAMESPACE)")
	expect(c.shutdownDelay >= 0, "shutdown-delay", c.shutdownDelay.String(), "0s or more")
	expect(c.tlsProvider == tlsprovider.Go || c.tlsProvider == tlsprovider.OpenSSL, "tls-provider", c.tlsProvider, tlsprovider.Go+" or "+tlsprovider.OpenSSL)
	var err error
	if c.level, err = parseLevel(c.logLevel); err != nil {
		problems = append(problems, err)
	}
	if c.brokerAuthorities != "" {
		if _, err := readAuthorities(c.brokerAuthorities); err != nil {
			problems = append(problems, fmt.Errorf("--broker-authorities-file: %w", err))
		}
	}
	if c.trustedKeys == "" {
		expect(false, "trusted-keys-file", "", "the file with the operator's public keys")
	} else if _, err := readTrustedKeys(c.trustedKeys); err != nil {
		problems = append(problems, fmt.Errorf("--trusted-keys-file: %w", err))
	}
	return errors.Join(problems...)
}

// parseLevel returns the level of the log that --log-level names.
func parseLevel(text string) (level slog.Level, err error) {
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, text) {
		return 0, fmt.Errorf("--log-level is %q, expected debug, info, warn or error", text)
	}
	return level, level.UnmarshalText([]byte(text))
}

func isAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	_, bad := strconv.ParseUint(port, 10, 16)
	return err == nil && bad == nil
}

// newLogger returns the logger of the gateway, which its libraries also use. end writes how many
// lines the limit on repeats has left out.
func newLogger(level slog.Leveler, to io.Writer) (logger *slog.Logger, end func()) {
	handler, end := logs.New(logs.Options{To: to, Format: logs.JSON, Level: level, Component: "gateway", Version: program.Version(version)})
	libraries.Use(handler)
	return slog.New(handler), end
}
