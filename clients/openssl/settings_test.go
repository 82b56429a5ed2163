// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

// OpenSSL's own server with unusual settings. It sends back each line with its letters in reverse order.
func TestServersWithUnusualSettings(t *testing.T) {
	authority := newAuthority(t)
	module, err := openssl.LoadedModule(testLibrary)
	if err != nil {
		t.Fatal(err)
	}
	authorities, serverInfo := filepath.Join(t.TempDir(), "authorities.pem"), filepath.Join(t.TempDir(), "serverinfo.pem")
	for name, content := range map[string][]byte{
		authorities: bytes.Repeat(authority.pem, 50),
		// An extension of the type 1234 with one byte.
		serverInfo: encodePEM("SERVERINFO FOR AN EXTENSION", []byte{4, 210, 0, 1, 1}),
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("0123456789abcdef", 1000) // a line as long as one record, which the server reverses as a whole
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
		"a key that both could know":           {settings: "-tls1_3 -psk 0123456789abcdef"},
		"a cipher that nobody offers":          {settings: "-ciphersuites TLS_AES_128_CCM_8_SHA256", refused: true},
		"signatures by RSA alone":              {settings: "-sigalgs RSA+SHA256", refused: true},
		"no certificate":                       {settings: "-nocert", refused: true},
		"its own preferences":                  {settings: "-serverpref -prioritize_chacha"},
		"exported keys":                        {settings: "-keymatexport label -keymatexportlen 20"},
		"an extension of its own":              {settings: "-serverinfo {serverinfo}"},
		"an authority behind its certificate":  {settings: "-cert_chain {authority}"},
		"the same authority many times":        {settings: "-cert_chain {authorities}"},
		"it knows another name":                {settings: "-servername other -cert2 {certificate} -key2 {key}"},
		"and it is offended by ours":           {settings: "-servername other -servername_fatal -cert2 {certificate} -key2 {key}", refused: true},
		"old renegotiation":                    {settings: "-tls1_2 -legacy_renegotiation"},
		"a session of another kind":            {settings: "-tls1_2 -id_prefix abc -no_ticket"},
	} {
		t.Run(name, func(t *testing.T) {
			settings := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(test.settings, "{authorities}", authorities), "{serverinfo}", serverInfo))
			server := startSServer(t, authority, append([]string{"-rev"}, settings...)...)
			withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
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

// With -www, OpenSSL's own server answers a request with a page about the connection, whose end is the end of the connection.
func TestOpenSSLsOwnServerServesAPage(t *testing.T) {
	authority := newAuthority(t)
	for _, version := range []string{"-tls1_2", "-tls1_3"} {
		t.Run(version, func(t *testing.T) {
			withEachProvider(t, openssl.Config{RootCAs: authority.pem}, func(t *testing.T, p provider) {
				server := startSServer(t, authority, "-www", version)
				response, err := httpClient(t, p.http1()).Get("https://" + server.address)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				if page, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(page), "</HTML>") {
					t.Errorf("read %d bytes: %v", len(page), err)
				}
			})
		})
	}
}

// Early data can be replayed (RFC 8446, section 8).
func TestNoEarlyDataIsSentToAServerThatTakesIt(t *testing.T) {
	authority := newAuthority(t)
	withEachProvider(t, openssl.Config{RootCAs: authority.pem, SessionCacheSize: 1}, func(t *testing.T, p provider) {
		server := startSServer(t, authority, "-early_data", "-max_early_data", "1000")
		for i := range 2 {
			conn := p.dial(t, server.address, "localhost")
			if _, err := fmt.Fprintf(conn, "message %d\n", i); err != nil {
				t.Fatal(err)
			}
			server.wait(t, "No early data received")
			server.wait(t, fmt.Sprintf("message %d", i))
			server.command(t, "answer")
			expect(t, conn, "answer\n")
			if resumed := conn.ConnectionState().DidResume; resumed != (i > 0) {
				t.Errorf("connection %d: resumed is %t", i, resumed)
			}
			_ = conn.Close()
		}
	})
}
