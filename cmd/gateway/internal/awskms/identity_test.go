// SPDX-License-Identifier: Apache-2.0

package awskms_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/tlsprovider"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/awskms"
)

func TestTheIdentityOfTheProgramIsUsedOnlyIfTheCallerAsksForIt(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "of-the-program")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	asked := make(chan string, 1)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.Header.Get("Authorization"):
		default:
		}
	}))
	t.Cleanup(service.Close)
	config := providers.Config{Name: "aws", Type: providers.AWSKMS, Endpoints: []string{service.URL}, AWSKMS: &providers.AWSKMSSettings{Region: "eu-central-1"}}

	for sentence, given := range map[string]providers.Credentials{
		"no credentials": nil, "an empty access key": {providers.AccessKeyID: {}, providers.SecretAccessKey: {}}, "only a token": {providers.SessionToken: []byte("t")},
	} {
		p, err := awskms.Open(&config, given)
		if p != nil {
			p.Close()
		}
		if bad := (*providers.CredentialsError)(nil); !errors.As(err, &bad) {
			t.Errorf("%s: got %v, want a CredentialsError", sentence, err)
		}
	}
	select {
	case by := <-asked:
		t.Fatalf("the service was asked with the credentials %q", by)
	default:
	}

	config.ActsAsProgram = true
	if tlsprovider.Current().Provider != tlsprovider.Go {
		t.Setenv("AWS_CA_BUNDLE", "/authorities")
		const want = "found the variable AWS_CA_BUNDLE, expected none with OpenSSL: SSL_CERT_FILE names a file with authorities"
		if _, err := awskms.Open(&config, nil); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	t.Setenv("AWS_CA_BUNDLE", "")
	p, err := awskms.Open(&config, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if by := <-asked; !strings.Contains(by, "Credential=of-the-program/") {
		t.Errorf("found the credentials %q, expected those of the program", by)
	}
}
