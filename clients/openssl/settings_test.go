// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// OpenSSL's own server with settings that servers seldom have. It sends back each line with its letters in reverse.
func TestServersWithUnusualSettings(t *testing.T) {
	authority := newAuthority(t)
	module, err := openssl.LoadedModule(testLibrary)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("0123456789abcdef", 1000) // of one record, which the server turns around as a whole
	for name, test := range map[string]struct {
		settings string
		refused  bool
	}{
		"records of 512 bytes":                 {settings: "-max_send_frag 512"},
		"records of TLS 1.2 of 512 bytes":      {settings: "-max_send_frag 512 -tls1_2"},
		"padded records":                       {settings: "-record_padding 4096"},
		"no tickets":                           {settings: "-no_ticket"},
		"many tickets":                         {settings: "-num_tickets 10"},
		"no cache and no tickets with TLS 1.2": {settings: "-no_cache -no_ticket -tls1_2"},
		"a group that needs another hello":     {settings: "-groups P-384"},
		"another hello with a cookie":          {settings: "-groups P-384 -stateless"},
		"ChaCha20-Poly1305":                    {settings: "-ciphersuites TLS_CHACHA20_POLY1305_SHA256", refused: module.FIPS}, // the server, too, has the FIPS provider alone
		"AES-CCM alone":                        {settings: "-tls1_2 -cipher ECDHE-ECDSA-AES128-CCM8@SECLEVEL=0", refused: true},
		"a certificate of clients is welcome":  {settings: "-verify 1"},
		"and one is required":                  {settings: "-Verify 1 -verify_return_error", refused: true},
		"and one is required with TLS 1.2":     {settings: "-Verify 1 -verify_return_error -tls1_2", refused: true},
		"compression":                          {settings: "-comp -tls1_2"},
		"no encryption":                        {settings: "-tls1_2 -cipher NULL@SECLEVEL=0", refused: true},
		"no authentication":                    {settings: "-tls1_2 -cipher aNULL@SECLEVEL=0", refused: true},
		"a key that both have to know":         {settings: "-tls1_2 -cipher PSK@SECLEVEL=0 -psk 0123456789abcdef -nocert", refused: true},
		"TLS 1.1":                              {settings: "-tls1_1 -cipher ALL@SECLEVEL=0", refused: true},
		"signatures with SHA-1 alone":          {settings: "-tls1_2 -sigalgs ECDSA+SHA1 -cipher ALL@SECLEVEL=0", refused: true},
		"a protocol that nobody asked for":     {settings: "-alpn other"},
	} {
		t.Run(name, func(t *testing.T) {
			withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
				server := startSServer(t, authority, append([]string{"-rev"}, strings.Fields(test.settings)...)...)
				err := reversed(t, p, server.address, "a line", long)
				if refused := err != nil; refused != test.refused {
					t.Errorf("%v; expected that it is refused: %t", err, test.refused)
				}
			})
		})
	}
}

// reversed sends lines to a server, and expects each in reverse.
func reversed(t *testing.T, p provider, address string, lines ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn := p.dial(t, address, "localhost")
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	reader := bufio.NewReader(conn)
	for _, line := range lines {
		if _, err := fmt.Fprintln(conn, line); err != nil {
			return err
		}
		answer, err := reader.ReadString('\n')
		if err != nil {
			return err
		}
		if got := reverse(strings.TrimSuffix(answer, "\n")); got != line {
			return fmt.Errorf("read %d bytes, expected a line of %d in reverse", len(got), len(line))
		}
	}
	return nil
}

func reverse(text string) string {
	bytes := []byte(text)
	for i, j := 0, len(bytes)-1; i < j; i, j = i+1, j-1 {
		bytes[i], bytes[j] = bytes[j], bytes[i]
	}
	return string(bytes)
}
