// SPDX-License-Identifier: Apache-2.0

//go:build keymanagers

package kmsplugin_test

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmip"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/awskms"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/kmsplugin"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
	"github.com/crypto-broker/crypto-broker-operator/test/moto"
	"github.com/crypto-broker/crypto-broker-operator/test/pykmip"
)

// with returns a plugin whose key is in a real key manager. The provider remembers nothing, so that
// the test sees changes at once.
func with(t *testing.T, config *providers.Config, given providers.Credentials, makeKey func(p providers.Provider) (id string)) (*harness, providers.Provider) {
	t.Helper()
	config.Name, config.CacheTime = "manager", -time.Second
	p, err := providers.Types{providers.KMIP: kmip.Open, providers.AWSKMS: awskms.Open}.Open(config, given)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	stack := keys.NewStack(nil)
	stack.Use(map[string]keys.Provider{"manager": p})
	key := "manager/" + makeKey(p)
	return newHarness(t, func(o *kmsplugin.Options) { o.Keys, o.Key = stack, key }), p
}

func (h *harness) expectDecrypts(of ...*kmsapi.EncryptResponse) {
	h.Helper()
	for _, w := range of {
		if got, err := h.decrypt(w); err != nil || !bytes.Equal(got, secret) {
			h.Errorf("found %q, %v", got, err)
		}
	}
}

func TestAKeyByKMIPIsRotatedAndComesBack(t *testing.T) {
	servers := pykmip.Start(t, 1)
	given := providers.Credentials{}
	for name, path := range map[string]string{
		providers.ClientCertificate: servers.Certificate, providers.ClientKey: servers.Key, providers.Authorities: servers.Authority,
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		given[name] = data
	}
	h, p := with(t, &providers.Config{Type: providers.KMIP, Endpoints: servers.Addresses}, given, func(p providers.Provider) string {
		if err := p.(keys.Creator).CreateAES(t.Context(), "cluster-secrets", 256); err != nil {
			t.Fatal(err)
		}
		return "cluster-secrets"
	})
	first := h.expectHealthy()
	before := h.encrypt()
	<-time.After(1100 * time.Millisecond) // PyKMIP sorts by dates, which have a resolution of one second in KMIP
	if err := p.(keys.Creator).Rotate(t.Context(), "cluster-secrets"); err != nil {
		t.Fatal(err)
	}
	h.later(time.Minute)
	second := h.expectHealthy()
	if second == first {
		t.Error("after a rotation, the key id is the same")
	}
	after := h.encrypt()
	h.expectDecrypts(before, after)

	servers.Kill(t, 0)
	h.later(time.Minute)
	if found, want := h.status().GetHealthz(), `the key provider "manager" does not answer`; found != want {
		t.Errorf("the server is killed, and the status is %q, want %q", found, want)
	}
	servers.Restart(t, 0)
	apiserver.Eventually(t, "the plugin recovers", func() error {
		h.later(time.Minute)
		if found := h.status().GetHealthz(); found != "ok" {
			return errors.New(found)
		}
		return nil
	})
	if id := h.expectHealthy(); id != second {
		t.Errorf("after a restart of the server, the key id changed from %s to %s", second, id)
	}
	h.expectDecrypts(before, after)
}

func TestAKeyOfAWSHasOneKeyIdThroughItsRotations(t *testing.T) {
	url := moto.Start(t)
	admin := kms.NewFromConfig(aws.Config{Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")},
		func(o *kms.Options) { o.BaseEndpoint = &url })
	given := providers.Credentials{providers.AccessKeyID: []byte("id"), providers.SecretAccessKey: []byte("secret")}
	config := &providers.Config{Type: providers.AWSKMS, Endpoints: []string{url}, AWSKMS: &providers.AWSKMSSettings{Region: "eu-central-1"}}
	var id string
	h, _ := with(t, config, given, func(providers.Provider) string {
		made, err := admin.CreateKey(t.Context(), &kms.CreateKeyInput{KeySpec: types.KeySpecSymmetricDefault, KeyUsage: types.KeyUsageTypeEncryptDecrypt})
		if err != nil {
			t.Fatal(err)
		}
		id = *made.KeyMetadata.KeyId
		return id
	})
	first := h.expectHealthy()
	before := h.encrypt()
	if _, err := admin.RotateKeyOnDemand(t.Context(), &kms.RotateKeyOnDemandInput{KeyId: &id}); err != nil {
		t.Fatal(err)
	}
	h.later(time.Minute)
	if found := h.expectHealthy(); found != first {
		t.Errorf("the key id changed from %s to %s", first, found)
	}
	h.expectDecrypts(before, h.encrypt())

	if _, err := admin.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &id}); err != nil {
		t.Fatal(err)
	}
	h.later(time.Minute)
	if found := h.status(); found.GetHealthz() == "ok" || found.GetKeyId() != "" {
		t.Errorf("the key is disabled, and the status is %v", found)
	}
}
