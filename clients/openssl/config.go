// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Config is what a [Client] uses. Its zero value is usable: the authorities of the system, TLS 1.2 and
// 1.3, no client certificate. [FromTLS] makes one from a configuration of crypto/tls.
type Config struct {
	// RootCAs are the certificates of authorities, as PEM. A certificate in RootCAs is trusted even if it is not self-signed. If it
	// is empty, the authorities of the system's OpenSSL are trusted.
	RootCAs []byte
	// CRLs are revocation lists, as PEM. If it is not empty, each certificate of the peer except the
	// trusted one needs a current list of its issuer, and must not be in it.
	CRLs []byte
	// Certificate is the certificate of the client with its intermediates, as PEM, the client's own first.
	// PrivateKey is its key, as PEM without a password. Both or none are set. New copies what it needs.
	Certificate, PrivateKey []byte
	// ServerName is the DNS name or the IP address that the certificate of the peer has to have. If it is
	// empty, it is the host that is dialed. A DNS name is sent to the peer (SNI, RFC 6066, section 3).
	ServerName string
	// NextProtos are the protocols that are offered to the peer, the best first (ALPN, RFC 7301). Each name has 1 to 255 bytes. All
	// names together have at most 16 KiB, where each name counts one byte more than its length.
	NextProtos []string
	// MinVersion is the oldest version of TLS, [tls.VersionTLS12] if it is 0. Older ones are refused.
	// MaxVersion is the newest, [tls.VersionTLS13] if it is 0.
	MinVersion, MaxVersion uint16
	// CipherSuites are the suites of TLS 1.2, the best first. Only those that [tls.CipherSuites] lists
	// are accepted. If it is empty, they are those with ECDHE and with AES-GCM or ChaCha20-Poly1305.
	// The suites of TLS 1.3 cannot be chosen.
	CipherSuites []uint16
	// CurvePreferences are the key agreements, the best first. If it is empty, OpenSSL chooses.
	CurvePreferences []tls.CurveID
	// SessionCacheSize is how many sessions are kept for resumption, one for each host. With 0 each
	// connection has a full handshake.
	SessionCacheSize int
	// RequireFIPS makes New fail unless OpenSSL uses its FIPS provider by default; see [Module].
	RequireFIPS bool
	// Library is the path or the name of libssl. If it is empty, it is the libssl.so.3 or else the
	// libssl.so.1.1 that the system's loader finds.
	Library string
}

// settings are a Config that was checked, in the form that OpenSSL has.
type settings struct {
	roots, crls, certificates [][]byte // DER
	key                       []byte   // DER
	minVersion, maxVersion    uint16
	cipherList, groups        string
	protocols                 []byte
}

const defaultCipherList = "ECDHE+AESGCM:ECDHE+CHACHA20"

// OpenSSL's names of the suites of TLS 1.2.
var cipherNames = map[uint16]string{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:       "ECDHE-ECDSA-AES128-GCM-SHA256",
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384:       "ECDHE-ECDSA-AES256-GCM-SHA384",
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256:         "ECDHE-RSA-AES128-GCM-SHA256",
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384:         "ECDHE-RSA-AES256-GCM-SHA384",
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-ECDSA-CHACHA20-POLY1305",
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256:   "ECDHE-RSA-CHACHA20-POLY1305",
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA:          "ECDHE-ECDSA-AES128-SHA",
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA:          "ECDHE-ECDSA-AES256-SHA",
	tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA:            "ECDHE-RSA-AES128-SHA",
	tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA:            "ECDHE-RSA-AES256-SHA",
}

// OpenSSL's names of key agreements.
var groupNames = map[tls.CurveID]string{
	tls.X25519: "X25519", tls.CurveP256: "P-256", tls.CurveP384: "P-384", tls.CurveP521: "P-521",
	tls.X25519MLKEM768: "X25519MLKEM768", tls.SecP256r1MLKEM768: "SecP256r1MLKEM768", tls.SecP384r1MLKEM1024: "SecP384r1MLKEM1024",
}

func (config *Config) check() (*settings, error) {
	checked := &settings{minVersion: tls.VersionTLS12, maxVersion: tls.VersionTLS13, cipherList: defaultCipherList}
	var err error
	if checked.roots, err = decodePEM("RootCAs", config.RootCAs, "CERTIFICATE"); err != nil {
		return nil, err
	}
	if checked.crls, err = decodePEM("CRLs", config.CRLs, "X509 CRL"); err != nil {
		return nil, err
	}
	if checked.certificates, err = decodePEM("Certificate", config.Certificate, "CERTIFICATE"); err != nil {
		return nil, err
	}
	for field, list := range map[string][][]byte{"RootCAs": checked.roots, "Certificate": checked.certificates} {
		for _, der := range list {
			if _, err := x509.ParseCertificate(der); err != nil {
				return nil, fmt.Errorf("openssl: %s: parse a certificate: %w", field, err)
			}
		}
	}
	if err := config.checkKey(checked); err != nil {
		return nil, err
	}
	for field, version := range map[string]uint16{"MinVersion": config.MinVersion, "MaxVersion": config.MaxVersion} {
		if version != 0 && version != tls.VersionTLS12 && version != tls.VersionTLS13 {
			return nil, fmt.Errorf("openssl: %s: found %s, expected TLS 1.2 or TLS 1.3", field, tls.VersionName(version))
		}
	}
	if config.MinVersion != 0 {
		checked.minVersion = config.MinVersion
	}
	if config.MaxVersion != 0 {
		checked.maxVersion = config.MaxVersion
	}
	if checked.minVersion > checked.maxVersion {
		return nil, errors.New("openssl: MinVersion is newer than MaxVersion")
	}
	if err := config.checkAlgorithms(checked); err != nil {
		return nil, err
	}
	if checked.protocols, err = encodeProtocols(config.NextProtos); err != nil {
		return nil, err
	}
	if config.SessionCacheSize < 0 {
		return nil, fmt.Errorf("openssl: SessionCacheSize: found %d, expected 0 or more", config.SessionCacheSize)
	}
	if config.ServerName != "" {
		if _, err := parseName(config.ServerName); err != nil {
			return nil, err
		}
	}
	if strings.ContainsRune(config.Library, 0) {
		return nil, fmt.Errorf("openssl: Library: found a zero byte in %q", config.Library)
	}
	return checked, nil
}

func (config *Config) checkKey(checked *settings) error {
	if (len(config.PrivateKey) == 0) != (len(config.Certificate) == 0) {
		return errors.New("openssl: found one of Certificate and PrivateKey, expected both or none")
	}
	keys, err := decodePEM("PrivateKey", config.PrivateKey, "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY")
	if err != nil {
		return err
	}
	if len(keys) > 1 {
		for _, key := range keys {
			clear(key)
		}
		return fmt.Errorf("openssl: PrivateKey: found %d keys, expected one", len(keys))
	}
	if len(keys) == 1 {
		checked.key = keys[0]
	}
	return nil
}

func (config *Config) checkAlgorithms(checked *settings) error {
	var names []string
	for _, suite := range config.CipherSuites {
		name, ok := cipherNames[suite]
		if !ok {
			return fmt.Errorf("openssl: CipherSuites: found %s, expected a suite of TLS 1.2 that tls.CipherSuites lists", tls.CipherSuiteName(suite))
		}
		names = append(names, name)
	}
	if len(names) > 0 {
		checked.cipherList = strings.Join(names, ":")
	}
	names = nil
	for _, curve := range config.CurvePreferences {
		name, ok := groupNames[curve]
		if !ok {
			return fmt.Errorf("openssl: CurvePreferences: found %s, which has no name in OpenSSL", curve)
		}
		if slices.Contains(names, name) { // OpenSSL refuses it before 3.5, and ignores it since
			return fmt.Errorf("openssl: CurvePreferences: found %s twice", curve)
		}
		names = append(names, name)
	}
	checked.groups = strings.Join(names, ":")
	return nil
}

// decodePEM returns the content of the blocks. A text that is not empty must have at least one block, only blocks of the given
// types, and nothing that looks like the beginning of a block but is not one.
func decodePEM(field string, text []byte, types ...string) ([][]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var contents [][]byte
	for rest := text; ; {
		block, after := pem.Decode(rest)
		if block == nil {
			if strings.Contains(string(rest), "-----BEGIN") {
				return nil, fmt.Errorf("openssl: %s: found a block of PEM that cannot be decoded", field)
			}
			break
		}
		if !slices.Contains(types, block.Type) || len(block.Headers) > 0 {
			return nil, fmt.Errorf("openssl: %s: found a block of PEM of the type %.40q with %d headers, expected %s without headers",
				field, block.Type, len(block.Headers), strings.Join(types, " or "))
		}
		contents = append(contents, block.Bytes)
		rest = after
	}
	if len(contents) == 0 {
		return nil, fmt.Errorf("openssl: %s: found no block of PEM", field)
	}
	return contents, nil
}

// protocolsLimit is the size in bytes of the longest list of protocols. An extension of TLS has 64 KiB at most.
const protocolsLimit = 16 << 10

// encodeProtocols returns the names in the form of RFC 7301, section 3.1.
func encodeProtocols(names []string) ([]byte, error) {
	var encoded []byte
	for _, name := range names {
		if name == "" || len(name) > 255 {
			return nil, fmt.Errorf("openssl: NextProtos: found a name of %d bytes, expected 1 to 255", len(name))
		}
		encoded = append(append(encoded, byte(len(name))), name...)
	}
	if len(encoded) > protocolsLimit {
		return nil, fmt.Errorf("openssl: NextProtos: found %d bytes, expected %d at most", len(encoded), protocolsLimit)
	}
	return encoded, nil
}

// offers reports whether a list that encodeProtocols returned has a protocol.
func offers(protocols []byte, protocol string) bool {
	for len(protocols) > 0 {
		length := int(protocols[0])
		if string(protocols[1:1+length]) == protocol {
			return true
		}
		protocols = protocols[1+length:]
	}
	return false
}
