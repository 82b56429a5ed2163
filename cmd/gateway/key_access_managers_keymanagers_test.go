// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/go-jose/go-jose/v4"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/wrapping"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
	"github.com/crypto-broker/crypto-broker-operator/test/moto"
)

// managedService is a key access service with keys in AWS KMS, and a client of it.
type managedService struct {
	*keyAccess
	t         *testing.T
	providers string
	from      *issuer.Issuer
	prover    issuer.Prover
	client    wrapping.Key
}

// startManagedService starts a service whose keys rsa-1 and ec-2 are in AWS KMS.
func startManagedService(t *testing.T) *managedService {
	t.Helper()
	url := moto.Start(t)
	admin := kms.NewFromConfig(aws.Config{Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")}, func(o *kms.Options) { o.BaseEndpoint = &url })
	s := &managedService{t: t, providers: t.TempDir(), from: issuer.Start(t, issuer.Options{HTTP: true, Audience: "key-access"})}
	file := keyAccessConfig(t, s.from.URL, "keyDir:", "keyProvidersDir: "+s.providers+"\nkeyDir:")
	for id, made := range map[string]*kms.CreateKeyInput{
		"rsa-1": {KeySpec: types.KeySpecRsa2048, KeyUsage: types.KeyUsageTypeEncryptDecrypt},
		"ec-2":  {KeySpec: types.KeySpecEccNistP384, KeyUsage: types.KeyUsageTypeKeyAgreement},
	} {
		key, err := admin.CreateKey(t.Context(), made)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(filepath.Dir(file), "keys", id+".ref"), "aws/"+*key.KeyMetadata.KeyId+"\n")
	}
	if err := os.Mkdir(filepath.Join(s.providers, "aws"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.providers, "aws", "aws_access_key_id"), "id")
	write(t, filepath.Join(s.providers, "aws", "aws_secret_access_key"), "secret")
	s.provide(url, 8)
	config, err := readKeyAccessFile(file)
	if err != nil {
		t.Fatal(err)
	}
	config.StatusBindAddress = "127.0.0.1:0"
	logger := slog.New(slog.DiscardHandler)
	managers, err := newKeyManagers(t.Context(), config, logger)
	if err != nil {
		t.Fatal(err)
	}
	if s.keyAccess, err = newKeyAccess(t.Context(), config, managers, io.Discard, logger); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		managers.close()
	})
	key, err := issuer.NewKey(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	s.prover = issuer.Prover{Key: key, Algorithm: jose.ES256}
	if s.client, err = wrapping.ParseKey(newKey(t)); err != nil {
		t.Fatal(err)
	}
	return s
}

// provide writes the configuration of the key providers.
func (s *managedService) provide(url string, connections int) {
	s.t.Helper()
	write(s.t, filepath.Join(s.providers, "Providers.yaml"), fmt.Sprintf(
		"Providers:\n- Name: aws\n  Type: aws-kms\n  Endpoints: [%q]\n  AWSKMS: {Region: eu-central-1}\n  Connections: {Max: %d}\n", url, connections))
}

// file returns a data key with a policy, as a client makes it for a key of the service.
func (s *managedService) file(algorithm wrapping.Algorithm) (dataKey []byte, wanted *kas.UnsignedRewrapRequest_WithPolicyRequest) {
	s.t.Helper()
	key, ok := s.keys.Ring().Current(algorithm)
	if !ok {
		s.t.Fatalf("the service has no key of the algorithm %s: %v", algorithm, s.keys.Ring().Pending())
	}
	recipient, err := wrapping.NewRecipient(key.Key.Public(), false)
	if err != nil {
		s.t.Fatal(err)
	}
	dataKey = bytes.Repeat([]byte{byte(time.Now().Nanosecond())}, 32)
	wrapped, err := recipient.Wrap(dataKey)
	if err != nil {
		s.t.Fatal(err)
	}
	body := base64.StdEncoding.EncodeToString([]byte(`{"body":{}}`))
	return dataKey, &kas.UnsignedRewrapRequest_WithPolicyRequest{
		Policy: &kas.UnsignedRewrapRequest_WithPolicy{Id: "policy", Body: body},
		KeyAccessObjects: []*kas.UnsignedRewrapRequest_WithKeyAccessObject{{KeyAccessObjectId: "a", KeyAccessObject: &kas.KeyAccess{
			KeyType: string(algorithm.Type()), Kid: key.ID, WrappedKey: wrapped, EphemeralPublicKey: recipient.SessionKey(),
			PolicyBinding: &kas.PolicyBinding{Algorithm: "HS256", Hash: binding(dataKey, body)},
		}}},
	}
}

// ask returns the data key that the service releases, or the text of the failure.
func (s *managedService) ask(wanted *kas.UnsignedRewrapRequest_WithPolicyRequest) (dataKey []byte, failure string) {
	s.t.Helper()
	text, err := protojson.Marshal(&kas.UnsignedRewrapRequest{ClientPublicKey: s.client.Public(), Requests: []*kas.UnsignedRewrapRequest_WithPolicyRequest{wanted}})
	if err != nil {
		s.t.Fatal(err)
	}
	const procedure = "/kas.AccessService/Rewrap"
	in := connect.NewRequest(&kas.RewrapRequest{SignedRequestToken: issuer.Sign(s.prover.SigningKey(), map[string]any{}, map[string]any{"requestBody": string(text), "iat": time.Now().Unix()})})
	token := s.from.Token(s.from.Claims("alice", s.prover.Key))
	in.Header().Set("Authorization", "DPoP "+token)
	in.Header().Set("DPoP", s.prover.Proof(http.MethodPost, s.config.URL+procedure, token))
	out, err := connect.NewClient[kas.RewrapRequest, kas.RewrapResponse](http.DefaultClient, "http://"+s.listener.Addr().String()+procedure).CallUnary(s.t.Context(), in)
	if err != nil {
		s.t.Fatal(err)
	}
	result := out.Msg.GetResponses()[0].GetResults()[0]
	if result.GetStatus() != "permit" {
		return nil, result.GetError()
	}
	dataKey, err = s.client.Unwrap(s.t.Context(), wrapping.Wrapped{Type: wrapping.EC, Key: result.GetKasWrappedKey(), Ephemeral: out.Msg.GetSessionPublicKey()})
	if err != nil {
		s.t.Fatal(err)
	}
	return dataKey, ""
}

func TestKeysOfAKeyAccessServiceStayInAWSKMS(t *testing.T) {
	s := startManagedService(t)
	for _, algorithm := range []wrapping.Algorithm{wrapping.RSA2048, wrapping.P384, wrapping.P256} { // the last one is in a file
		dataKey, wanted := s.file(algorithm)
		for range 2 {
			if found, failure := s.ask(wanted); !bytes.Equal(found, dataKey) {
				t.Errorf("%s: found another data key, %s", algorithm, failure)
			}
		}
		object := wanted.GetKeyAccessObjects()[0].GetKeyAccessObject()
		object.WrappedKey[len(object.GetWrappedKey())-1] ^= 1
		if _, failure := s.ask(wanted); !strings.Contains(failure, "desc = bad request") {
			t.Errorf("%s, forged: found %q, expected a bad request", algorithm, failure)
		}
	}
	found := keyAccessSeries(t, s.keyAccess)
	for series, expected := range map[string]string{
		`data_key_lookups_total{result="hit"}`: "2", `data_key_lookups_total{result="miss"}`: "4", `data_key_lookups_total{result="coalesced"}`: "0", "data_keys_kept": "2",
		`data_keys_total{result="released"}`: "6", `data_keys_total{result="invalid"}`: "3", `keys{state="pending"}`: "0",
		`key_manager_requests_total{provider="aws",result="unavailable"}`: "0",
	} {
		if found["crypto_broker_gateway_key_access_"+series] != expected {
			t.Errorf("%s: found %q, expected %s", series, found["crypto_broker_gateway_key_access_"+series], expected)
		}
	}
	// The expected requests: a check when the provider is opened, a description and a public key for each of two keys, and four
	// requests to unwrap.
	if served := found[`crypto_broker_gateway_key_access_key_manager_requests_total{provider="aws",result="served"}`]; served != "9" {
		t.Errorf("found %q requests that the key manager served, expected 9", served)
	}
}

func TestDataKeysAreForgottenWhenTheKeyProvidersChange(t *testing.T) {
	s := startManagedService(t)
	dataKey, wanted := s.file(wrapping.RSA2048)
	if found, failure := s.ask(wanted); !bytes.Equal(found, dataKey) {
		t.Fatalf("found another data key, %s", failure)
	}
	if kept := s.managers.dataKeys.Stats().Entries; kept != 1 {
		t.Fatalf("found %d data keys that are kept, expected 1", kept)
	}
	before := s.managers.generation()
	s.provide("http://127.0.0.1:1", 8) // an address at which nothing answers
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.managers.generation() == before && t.Context().Err() == nil {
		<-tick.C
	}
	if _, failure := s.ask(wanted); !strings.Contains(failure, "code = Unavailable desc = a key manager of this service does not answer") {
		t.Errorf("found %q, expected that the data key is not kept and the key manager does not answer", failure)
	}
	if kept := s.managers.dataKeys.Stats().Entries; kept != 0 {
		t.Errorf("found %d data keys that are kept, expected none", kept)
	}
}
