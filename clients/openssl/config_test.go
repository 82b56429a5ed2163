// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
)

func TestConfigurationsAreRefused(t *testing.T) {
	authority := newAuthority(t)
	client, other := authority.issue(t, forClients), authority.issue(t, forClients)
	for name, test := range map[string]struct {
		config  openssl.Config
		mention string
	}{
		"roots without PEM":                    {openssl.Config{RootCAs: []byte("nothing")}, "RootCAs"},
		"roots with a key":                     {openssl.Config{RootCAs: client.key}, "RootCAs"},
		"roots cut off":                        {openssl.Config{RootCAs: append(slices.Clone(authority.pem), "-----BEGIN CERTIFICATE-----\nabc"...)}, "RootCAs"},
		"roots that are no certificates":       {openssl.Config{RootCAs: encodePEM("CERTIFICATE", []byte("abc"))}, "RootCAs"},
		"lists that are no lists":              {openssl.Config{CRLs: encodePEM("X509 CRL", []byte("abc"))}, "CRLs"},
		"certificate without a key":            {openssl.Config{Certificate: client.certificate}, "PrivateKey"},
		"key without a certificate":            {openssl.Config{PrivateKey: client.key}, "Certificate"},
		"key of another certificate":           {openssl.Config{Certificate: client.certificate, PrivateKey: other.key}, "PrivateKey"},
		"two keys":                             {openssl.Config{Certificate: client.certificate, PrivateKey: append(slices.Clone(client.key), client.key...)}, "PrivateKey"},
		"TLS 1.1":                              {openssl.Config{MinVersion: tls.VersionTLS11}, "MinVersion"},
		"versions in the wrong order":          {openssl.Config{MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS12}, "MinVersion"},
		"suite that crypto/tls calls insecure": {openssl.Config{CipherSuites: []uint16{tls.TLS_RSA_WITH_RC4_128_SHA}}, "CipherSuites"},
		"suite of TLS 1.3":                     {openssl.Config{CipherSuites: []uint16{tls.TLS_AES_128_GCM_SHA256}}, "CipherSuites"},
		"unknown key agreement":                {openssl.Config{CurvePreferences: []tls.CurveID{9999}}, "CurvePreferences"},
		"empty protocol":                       {openssl.Config{NextProtos: []string{""}}, "NextProtos"},
		"protocol of 256 bytes":                {openssl.Config{NextProtos: []string{strings.Repeat("a", 256)}}, "NextProtos"},
		"negative cache":                       {openssl.Config{SessionCacheSize: -1}, "SessionCacheSize"},
		"the same key agreement twice":         {openssl.Config{CurvePreferences: []tls.CurveID{tls.CurveP256, tls.CurveP256}}, "CurvePreferences"},
		"protocols of more than 16 KiB":        {openssl.Config{NextProtos: slices.Repeat([]string{strings.Repeat("a", 255)}, 65)}, "NextProtos"},
		"library that is not there":            {openssl.Config{Library: "/nowhere/libssl.so"}, "/nowhere/libssl.so"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := openssl.New(test.config)
			if err == nil {
				_ = client.Close()
				t.Fatal("found no error")
			}
			if !strings.Contains(err.Error(), test.mention) {
				t.Errorf("the error %q does not mention %s", err, test.mention)
			}
		})
	}
}

func TestEverySuiteOfTLS12ThatGoListsIsKnownToOpenSSL(t *testing.T) {
	authority := newAuthority(t)
	module, err := openssl.LoadedModule(testLibrary)
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range tls.CipherSuites() {
		if slices.Contains(suite.SupportedVersions, tls.VersionTLS12) {
			config := openssl.Config{RootCAs: authority.pem, CipherSuites: []uint16{suite.ID}, Library: testLibrary}
			client, err := openssl.New(config)
			if err == nil {
				_ = client.Close()
			}
			// FIPS 140-3 does not approve ChaCha20.
			if unapproved := strings.Contains(suite.Name, "CHACHA20"); (err == nil) == (unapproved && module.FIPS) {
				t.Errorf("%s with %+v: got %v", suite.Name, module, err)
			}
		}
	}
}

// Each field of crypto/tls is in one of the lists. A field of a later version of Go is in none of them, until somebody decides.
func TestNoFieldOfTheOtherConfigurationIsIgnored(t *testing.T) {
	pair := newAuthority(t).issue(t, forClients).pair(t)
	expectRefusals(t, []string{"RootCAs", "Certificates", "ServerName", "NextProtos", "MinVersion", "MaxVersion", "CipherSuites", "CurvePreferences"}, []string{
		"Rand", "Time", "NameToCertificate", "GetCertificate", "GetClientCertificate", "GetConfigForClient", "VerifyPeerCertificate", "VerifyConnection",
		"ClientAuth", "ClientCAs", "InsecureSkipVerify", "PreferServerCipherSuites", "SessionTicketsDisabled", "SessionTicketKey", "ClientSessionCache",
		"UnwrapSession", "WrapSession", "DynamicRecordSizingDisabled", "Renegotiation", "KeyLogWriter", "EncryptedClientHelloConfigList",
		"EncryptedClientHelloRejectionVerify", "GetEncryptedClientHelloKeys", "EncryptedClientHelloKeys",
	}, func(config *tls.Config) error {
		_, err := openssl.FromTLS(config, nil)
		return err
	}, func() *tls.Config { return &tls.Config{} })
	expectRefusals(t, []string{"Certificate", "PrivateKey", "Leaf"}, []string{"SupportedSignatureAlgorithms", "OCSPStaple", "SignedCertificateTimestamps"},
		func(certificate *tls.Certificate) error {
			_, err := openssl.FromTLS(&tls.Config{Certificates: []tls.Certificate{*certificate}}, nil)
			return err
		}, func() *tls.Certificate { copied := pair; return &copied })
}

// expectRefusals sets each field of a structure that is not mapped, and expects that it is refused by its name.
func expectRefusals[T any](t *testing.T, mapped, refused []string, use func(*T) error, fresh func() *T) {
	t.Helper()
	fields := reflect.TypeFor[T]()
	for i := range fields.NumField() {
		field := fields.Field(i)
		if !field.IsExported() || slices.Contains(mapped, field.Name) {
			continue
		}
		if !slices.Contains(refused, field.Name) {
			t.Errorf("found the field %s.%s, which this test does not know: decide whether it is taken over or refused", fields, field.Name)
			continue
		}
		structure := fresh()
		reflect.ValueOf(structure).Elem().Field(i).Set(something(t, field.Type))
		if err := use(structure); err == nil || !strings.Contains(err.Error(), field.Name) {
			t.Errorf("the field %s is accepted: %v", field.Name, err)
		}
	}
}

// something returns a value of the type that is not its zero value.
func something(t *testing.T, kind reflect.Type) reflect.Value {
	value := reflect.New(kind).Elem()
	switch kind.Kind() {
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int:
		value.SetInt(1)
	case reflect.Uint16:
		value.SetUint(1)
	case reflect.Func:
		value.Set(reflect.MakeFunc(kind, func([]reflect.Value) []reflect.Value { panic("not called") }))
	case reflect.Map:
		value.Set(reflect.MakeMap(kind))
	case reflect.Slice:
		value.Set(reflect.MakeSlice(kind, 1, 1))
	case reflect.Array:
		value.Index(0).SetUint(1)
	case reflect.Pointer:
		value.Set(reflect.New(kind.Elem()))
	case reflect.Interface:
		for _, implementation := range []any{strings.NewReader(""), io.Discard, tls.NewLRUClientSessionCache(1)} {
			if reflect.TypeOf(implementation).Implements(kind) {
				value.Set(reflect.ValueOf(implementation))
			}
		}
	}
	if value.IsZero() {
		t.Fatalf("found the type %s, which this test does not know", kind)
	}
	return value
}

func TestAConfigurationOfCryptoTLSConnectsAsBefore(t *testing.T) {
	servers, clients := newAuthority(t), newAuthority(t)
	address := serve(t, requireClients(servers.serverConfig(t), clients), echo)
	pool := x509.NewCertPool()
	pool.AddCert(servers.certificate)
	before := &tls.Config{
		RootCAs: pool, Certificates: []tls.Certificate{clients.issue(t, forClients).pair(t)}, ServerName: "localhost",
		MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.CurveP384},
	}
	config, err := openssl.FromTLS(before, servers.pem)
	if err != nil {
		t.Fatal(err)
	}
	conn := opensslProvider(t, config).dial(t, address, "")
	if err := roundTrip(conn, "hello"); err != nil {
		t.Error(err)
	}
}

func TestTheModuleIsWhatTheLibrarySays(t *testing.T) {
	module, err := openssl.LoadedModule(testLibrary)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(module)
	if !strings.HasPrefix(module.Version, "OpenSSL ") || testLibrary == "" && !strings.HasPrefix(module.Library, "libssl.so.") {
		t.Errorf("the module is %+v", module)
	}
	client, err := openssl.New(openssl.Config{RequireFIPS: true, Library: testLibrary})
	if err == nil {
		_ = client.Close()
	}
	if (err == nil) != module.FIPS {
		t.Errorf("the module has FIPS %t, and a client that requires FIPS got %v", module.FIPS, err)
	}
}

func TestAClosedClientMakesNoConnections(t *testing.T) {
	authority := newAuthority(t)
	address := serve(t, authority.serverConfig(t), echo)
	client, err := openssl.New(openssl.Config{RootCAs: authority.pem, Library: testLibrary})
	if err != nil {
		t.Fatal(err)
	}
	open, err := client.DialTLSContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	_ = client.Close()
	_ = client.Close()
	if conn, err := client.DialTLSContext(t.Context(), "tcp", address); err == nil {
		_ = conn.Close()
		t.Error("a closed client made a connection")
	}
	_ = open.SetDeadline(time.Now().Add(patience))
	if err := roundTrip(open, "hello"); err != nil {
		t.Errorf("a connection that was open: %v", err)
	}
}
