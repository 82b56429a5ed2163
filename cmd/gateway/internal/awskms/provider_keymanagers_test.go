// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package awskms_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/crypto-broker/crypto-broker-operator/broker/algorithm"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/awskms"
	"github.com/crypto-broker/crypto-broker-operator/test/moto"
)

const region = "eu-central-1"

func open(t *testing.T, url string, given providers.Credentials) providers.Provider {
	t.Helper()
	config := &providers.Config{Name: "aws", Type: providers.AWSKMS, Endpoints: []string{url}, AWSKMS: &providers.AWSKMSSettings{Region: region}, CacheTime: -time.Second}
	p, err := providers.Types{providers.AWSKMS: awskms.Open}.Open(config, given)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func accessKey() providers.Credentials {
	return providers.Credentials{providers.AccessKeyID: []byte("id"), providers.SecretAccessKey: []byte("secret")}
}

// administrator makes keys, because the provider cannot make any.
type administrator struct{ *kms.Client }

func administratorOf(url string) administrator {
	return administrator{kms.NewFromConfig(aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")},
		func(o *kms.Options) { o.BaseEndpoint = &url })}
}

func (a administrator) makeKey(t *testing.T, spec types.KeySpec, usage types.KeyUsageType, alias string) (id string) {
	t.Helper()
	made, err := a.CreateKey(t.Context(), &kms.CreateKeyInput{KeySpec: spec, KeyUsage: usage})
	if err != nil {
		t.Fatal(err)
	}
	id = *made.KeyMetadata.KeyId
	if _, err := a.CreateAlias(t.Context(), &kms.CreateAliasInput{AliasName: &alias, TargetKeyId: &id}); err != nil {
		t.Fatal(err)
	}
	return id
}

func find(t *testing.T, p keys.Provider, id string) *keys.Key {
	t.Helper()
	key, err := p.Key(t.Context(), keys.Name{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestAKeyInAWSWrapsDataKeys(t *testing.T) {
	url := moto.Start(t)
	admin, p := administratorOf(url), open(t, url, accessKey())
	id := admin.makeKey(t, types.KeySpecSymmetricDefault, types.KeyUsageTypeEncryptDecrypt, "alias/orders")
	gcm := algorithm.WrapAESGCM.String()
	dataKey, binding := bytes.Repeat([]byte{7}, 32), []byte("tenant 3")

	w := find(t, p, "alias/orders").Wrapper()
	wrapped, err := w.Wrap(t.Context(), gcm, dataKey, binding)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := find(t, p, id).Wrapper().Unwrap(t.Context(), gcm, wrapped, binding); err != nil || !bytes.Equal(got, dataKey) {
		t.Errorf("what was wrapped by the alias is not unwrapped by the id: %v", err)
	}
	for sentence, c := range map[string]struct {
		wrapped, binding []byte
	}{
		"another context": {wrapped, []byte("tenant 4")},
		"no context":      {wrapped, nil},
		"no ciphertext":   {nil, binding},
		"a forged one":    {append(bytes.Clone(wrapped[:len(wrapped)-1]), wrapped[len(wrapped)-1]^1), binding},
	} {
		if _, err := w.Unwrap(t.Context(), gcm, c.wrapped, c.binding); !errors.Is(err, keys.ErrInvalidCiphertext) {
			t.Errorf("%s: got %v, want ErrInvalidCiphertext", sentence, err)
		}
	}
	if _, err := w.Wrap(t.Context(), algorithm.WrapAESKW.String(), dataKey, nil); !errors.Is(err, keys.ErrUnusable) {
		t.Errorf("an algorithm that the service does not have: got %v, want ErrUnusable", err)
	}
}

func TestAKeyInAWSSignsAndGoVerifies(t *testing.T) {
	url := moto.Start(t)
	admin, p := administratorOf(url), open(t, url, accessKey())
	digest := sha256.Sum256([]byte("to be signed"))
	admin.makeKey(t, types.KeySpecRsa2048, types.KeyUsageTypeSignVerify, "alias/rsa")
	admin.makeKey(t, types.KeySpecEccNistP256, types.KeyUsageTypeSignVerify, "alias/ecdsa")
	sign := func(id string, options crypto.SignerOpts) (crypto.PublicKey, []byte) {
		t.Helper()
		key := find(t, p, id)
		signature, err := key.Signer(t.Context()).Sign(rand.Reader, digest[:], options)
		if err != nil {
			t.Fatal(err)
		}
		return key.Public(), signature
	}
	public, signature := sign("alias/rsa", crypto.SHA256)
	if rsa.VerifyPKCS1v15(public.(*rsa.PublicKey), crypto.SHA256, digest[:], signature) != nil {
		t.Error("the signature by PKCS #1 v1.5 is not valid")
	}
	public, signature = sign("alias/rsa", &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256})
	if rsa.VerifyPSS(public.(*rsa.PublicKey), crypto.SHA256, digest[:], signature, nil) != nil {
		t.Error("the signature by PSS is not valid")
	}
	public, signature = sign("alias/ecdsa", crypto.SHA256)
	if !ecdsa.VerifyASN1(public.(*ecdsa.PublicKey), digest[:], signature) {
		t.Error("the signature by ECDSA is not valid")
	}
	if _, err := find(t, p, "alias/ecdsa").Signer(t.Context()).Sign(rand.Reader, make([]byte, 64), crypto.SHA512); !errors.Is(err, keys.ErrUnusable) {
		t.Errorf("a hash that the service does not use with the curve: got %v, want ErrUnusable", err)
	}

	key := find(t, p, "alias/ecdsa")
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key.Signer(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	given := accessKey()
	given["alias_ecdsa.crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if found := find(t, open(t, url, given), "alias/ecdsa"); !found.OfAuthority() || found.Certificates()[0].CheckSignatureFrom(found.Certificates()[0]) != nil {
		t.Error("the key has no certificate of an authority, want the one of the credentials")
	}
}

func TestWhatAWSRefusesHasATypedError(t *testing.T) {
	url := moto.Start(t)
	admin, p := administratorOf(url), open(t, url, accessKey())
	id := admin.makeKey(t, types.KeySpecSymmetricDefault, types.KeyUsageTypeEncryptDecrypt, "alias/disabled")
	admin.makeKey(t, types.KeySpecHmac256, types.KeyUsageTypeGenerateVerifyMac, "alias/mac")
	if _, err := admin.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &id}); err != nil {
		t.Fatal(err)
	}
	for sentence, c := range map[string]struct {
		name keys.Name
		want error
	}{
		"a key that is not there":    {keys.Name{ID: "alias/none"}, keys.ErrNotFound},
		"a version, which is no key": {keys.Name{ID: "alias/mac", Version: id}, keys.ErrNotFound},
		"the key of another account": {keys.Name{ID: "arn:aws:kms:eu-central-1:1:key/" + id}, keys.ErrNotFound},
		"a key that is disabled":     {keys.Name{ID: "alias/disabled"}, keys.ErrUnusable},
	} {
		if _, err := p.Key(t.Context(), c.name); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", sentence, err, c.want)
		}
	}
	if _, err := p.Key(t.Context(), keys.Name{ID: "alias/mac"}); err == nil {
		t.Error("a key for message authentication was accepted")
	}
	if _, err := p.Check(t.Context()); err != nil {
		t.Errorf("a check: %v", err)
	}
	away := open(t, "http://127.0.0.1:1", accessKey())
	for range 4 {
		if _, err := away.Key(t.Context(), keys.Name{ID: "alias/mac"}); !errors.Is(err, keys.ErrUnavailable) {
			t.Errorf("a service that does not answer: got %v, want ErrUnavailable", err)
		}
	}
	if away.Status()[0].Usable {
		t.Error("the breaker has not noticed that the service does not answer")
	}
}
