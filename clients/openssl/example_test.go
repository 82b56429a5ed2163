// SPDX-License-Identifier: Apache-2.0

package openssl_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"

	"google.golang.org/grpc"

	"github.com/crypto-broker/crypto-broker-operator/clients/openssl"
	"github.com/crypto-broker/crypto-broker-operator/clients/openssl/opensslgrpc"
)

func ExampleNew() {
	client, err := openssl.New(openssl.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	response, err := (&http.Client{Transport: client.Transport()}).Get("https://example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Println(response.Status, client.Module().Version)
}

func ExampleClient_DialTLSContext() {
	client, err := openssl.New(openssl.Config{RequireFIPS: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	transport := &http.Transport{DialTLSContext: client.DialTLSContext, Proxy: nil, MaxIdleConnsPerHost: 10}
	response, err := (&http.Client{Transport: transport}).Get("https://example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Println(response.Status)
}

func ExampleFromTLS() {
	before := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: x509.NewCertPool()}
	roots, err := os.ReadFile("ca.crt")
	if err != nil {
		fmt.Println(err)
		return
	}
	before.RootCAs.AppendCertsFromPEM(roots)

	config, err := openssl.FromTLS(before, roots)
	if err != nil {
		fmt.Println(err)
		return
	}
	config.SessionCacheSize = 64
	fmt.Println(openssl.New(config))
}

func Example_gRPC() {
	client, err := openssl.New(openssl.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := grpc.NewClient("example.com:443", grpc.WithTransportCredentials(opensslgrpc.New(client)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
}
