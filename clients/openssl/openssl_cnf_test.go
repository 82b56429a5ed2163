// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// The environment of a process that has another openssl.cnf: the settings of a client, the address of a server, and a file with its
// authority.
const (
	cnfSettings  = "CNF_SETTINGS"
	cnfServer    = "CNF_SERVER"
	cnfAuthority = "CNF_AUTHORITY"
)

var settingsOfCnf = map[string]openssl.Config{
	"default": {},
	"TLS 1.2": {MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12},
	"TLS 1.3": {MinVersion: tls.VersionTLS13},
	"AES-128": {CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}},
}

// OpenSSL reads openssl.cnf once in a process, so each case has a process of its own.
func TestWhatOpenSSLsConfigurationFileForbidsIsNotAllowedAgain(t *testing.T) {
	if name := os.Getenv(cnfSettings); name != "" {
		fmt.Printf("result %s\n", connectWithCnf(t, settingsOfCnf[name]))
		return
	}
	authority := newAuthority(t)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, authority.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	server := func(maxVersion, suite uint16) string {
		config := authority.serverConfig(t)
		config.MaxVersion, config.CipherSuites = maxVersion, []uint16{suite}
		return serve(t, config, echo)
	}
	const aes128, aes256 = tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
	servers := map[string]string{"TLS 1.3": server(0, aes128), "AES-128": server(tls.VersionTLS12, aes128), "AES-256": server(tls.VersionTLS12, aes256)}
	const refused, noVersion, noSuite = "openssl: handshake", "openssl: MinVersion and MaxVersion", "openssl: CipherSuites"
	for _, test := range []struct{ line, settings, server, result string }{
		{"", "default", "TLS 1.3", "TLS 1.3"},
		{"", "default", "AES-128", "TLS 1.2"},
		{"MinProtocol = TLSv1.3", "default", "TLS 1.3", "TLS 1.3"},
		{"MinProtocol = TLSv1.3", "default", "AES-128", refused},
		{"MinProtocol = TLSv1.3", "TLS 1.2", "AES-128", noVersion},
		{"MinProtocol = TLSv1", "default", "AES-128", "TLS 1.2"},
		{"MaxProtocol = TLSv1.2", "default", "TLS 1.3", "TLS 1.2"},
		{"MaxProtocol = TLSv1.2", "TLS 1.3", "TLS 1.3", noVersion},
		{"CipherString = ECDHE+AES256", "default", "TLS 1.3", "TLS 1.3"},
		{"CipherString = ECDHE+AES256", "default", "AES-256", "TLS 1.2"},
		{"CipherString = ECDHE+AES256", "default", "AES-128", refused},
		{"CipherString = ECDHE+AES256", "AES-128", "AES-128", noSuite},
		{"CipherString = AES256-SHA", "default", "TLS 1.3", noSuite},
		{"CipherString = AES256-SHA", "TLS 1.3", "TLS 1.3", "TLS 1.3"},
		{"CipherString = ALL:@SECLEVEL=2", "AES-128", "AES-128", "TLS 1.2"},
	} {
		t.Run(fmt.Sprintf("%q, %s, a server with %s", test.line, test.settings, test.server), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "openssl.cnf")
			text := "openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\n" + test.line + "\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWhatOpenSSLsConfigurationFileForbidsIsNotAllowedAgain$")
			command.Env = append(os.Environ(), "OPENSSL_CONF="+file, cnfSettings+"="+test.settings, cnfServer+"="+servers[test.server], cnfAuthority+"="+roots)
			output, err := command.CombinedOutput()
			_, result, _ := bytes.Cut(output, []byte("result "))
			if err != nil || !strings.HasPrefix(string(result), test.result) {
				t.Errorf("%v, expected the result %s\n%s", err, test.result, output)
			}
		})
	}
}

// connectWithCnf returns the version of a connection to the server, or the error.
func connectWithCnf(t *testing.T, config openssl.Config) string {
	var err error
	if config.RootCAs, err = os.ReadFile(os.Getenv(cnfAuthority)); err != nil {
		t.Fatal(err)
	}
	config.Library = testLibrary
	client, err := openssl.New(config)
	if err != nil {
		return err.Error()
	}
	_ = client.Close()
	conn := opensslProvider(t, config).dial(t, os.Getenv(cnfServer), "localhost")
	if err := roundTrip(conn, "hello"); err != nil {
		return err.Error()
	}
	return tls.VersionName(conn.ConnectionState().Version)
}
