// SPDX-License-Identifier: Apache-2.0

package providersource

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/cmd/gateway/internal/awskms"
	"github.com/crypto-broker/crypto-broker-operator/controllers/providerreport"
)

// managers opens providers that say in the version of a key where it comes from.
type managers struct {
	mu            sync.Mutex
	total, closed int
	// asked has the names of the keys that were asked for.
	asked map[keys.Name]int
}

func (m *managers) open(config *providers.Config, credentials providers.Credentials) (providers.Provider, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total++
	from := config.Endpoints[0] + " " + string(credentials[providers.Token])
	if certificate := credentials["issuer.crt"]; certificate != nil {
		from += " " + string(certificate)
	}
	return &manager{m, from}, nil
}

// opened returns how many providers were opened, and stillOpen how many of them are open.
func (m *managers) opened() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
}

func (m *managers) stillOpen() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total - m.closed
}

type manager struct {
	all  *managers
	from string
}

func (m *manager) Key(_ context.Context, name keys.Name) (*keys.Key, error) {
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	if m.all.asked == nil {
		m.all.asked = map[keys.Name]int{}
	}
	m.all.asked[name]++
	return keys.NewWrapping(name.ID, nil).WithVersion(m.from), nil
}
func (m *manager) KeyNow(keys.Name) (*keys.Key, error)   { return nil, keys.ErrWouldWait }
func (m *manager) Status() []pool.Status                 { return nil }
func (m *manager) Check(context.Context) (string, error) { return "", nil }
func (m *manager) Close() {
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	m.all.closed++
}

func TestAReplacedProviderServesCallsThatHaveBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &managers{}
		s := New(Options{})
		old, _ := all.open(&providers.Config{Endpoints: []string{"a"}}, nil)
		s.drain(old)
		time.Sleep(drainTime - time.Second) //nolint:forbidigo // the time of this test is not real
		synctest.Wait()
		if all.stillOpen() != 1 {
			t.Error("the provider was closed at once")
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // the time of this test is not real
		synctest.Wait()
		if all.stillOpen() != 0 {
			t.Errorf("the provider is open after %s", drainTime)
		}
	})
}

// A provider that knew the same key by several names would count its random nonces several times.
func TestAKeyIsOneKeyForAllProfilesAndOperations(t *testing.T) {
	all := &managers{}
	s := New(Options{Types: providers.Types{providers.KMIP: all.open}, Logger: slog.New(slog.DiscardHandler)})
	s.read, s.namespaces["shop"] = true, nil
	e := newEntry(s, types.NamespacedName{Namespace: "shop", Name: "hsm"})
	e.update(t.Context(), version{}, &v1alpha1.KeyProviderSpec{Type: providers.KMIP, Endpoints: []v1alpha1.KeyEndpoint{"kmip"}})
	s.entries[e.key] = e
	uses := []keys.Use{{Profile: "A", Operation: profile.OpEncryptData}, {Profile: "B", Operation: profile.OpEncryptData}, {Profile: "B", Operation: profile.OpDecryptData}}
	for _, use := range uses {
		for _, version := range []string{"", "1"} {
			if _, err := s.For("shop").Key(t.Context(), keys.Name{ID: "hsm/master", Version: version, Use: use}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := map[keys.Name]int{{ID: "master"}: 3, {ID: "master", Version: "1"}: 2, {ID: "master", Version: "1", Opens: true}: 1}
	if !maps.Equal(all.asked, want) {
		t.Errorf("the provider was asked for %v, expected %v", all.asked, want)
	}
}

// The API server refuses such a KeyProvider, unless its resource definition has another version.
func TestAKeyProviderNeverActsAsTheGateway(t *testing.T) {
	spec := func(change func(*v1alpha1.KeyProviderSpec)) *v1alpha1.KeyProviderSpec {
		s := &v1alpha1.KeyProviderSpec{Type: providers.OpenBao, Endpoints: []v1alpha1.KeyEndpoint{"https://bao"}, OpenBao: &v1alpha1.OpenBaoSettings{}}
		change(s)
		return s
	}
	for sentence, test := range map[string]struct {
		namespace string
		spec      *v1alpha1.KeyProviderSpec
		opened    int
	}{
		"a role in a namespace":  {"shop", spec(func(s *v1alpha1.KeyProviderSpec) { s.OpenBao.Role = "gateway" }), 0},
		"a role for the cluster": {"", spec(func(s *v1alpha1.KeyProviderSpec) { s.OpenBao.Role = "gateway" }), 1},
		"no credentials at AWS": {"shop", spec(func(s *v1alpha1.KeyProviderSpec) {
			s.Type, s.OpenBao = providers.AWSKMS, nil
			s.AWSKMS = &v1alpha1.AWSKMSSettings{Region: "a"}
		}), 0},
		"a library in a namespace": {"shop", spec(func(s *v1alpha1.KeyProviderSpec) {
			s.Type, s.OpenBao, s.Endpoints = providers.PKCS11, nil, nil
			s.PKCS11 = &v1alpha1.PKCS11Settings{Module: "/a", TokenLabel: "a"}
		}), 0},
		"nothing special, for control": {"shop", spec(func(*v1alpha1.KeyProviderSpec) {}), 1},
	} {
		all := &managers{}
		s := New(Options{Types: providers.Types{providers.OpenBao: all.open, providers.AWSKMS: all.open, providers.PKCS11: all.open}, Logger: slog.New(slog.DiscardHandler)})
		newEntry(s, types.NamespacedName{Namespace: test.namespace, Name: "hsm"}).update(t.Context(), version{}, test.spec)
		if found := all.opened(); found != test.opened {
			t.Errorf("%s: opened %d providers, expected %d", sentence, found, test.opened)
		}
	}
}

// Without an access key, the library of AWS takes what the environment of the key gateway has.
func TestASecretWithoutAnAccessKeyDoesNotLendTheIdentityOfTheGateway(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "gateway")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	kms := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(kms.Close)
	for sentence, test := range map[string]struct {
		namespace   string
		credentials providers.Credentials
		opened      int
	}{
		"no entries in a namespace":          {"shop", nil, 0},
		"an empty access key in a namespace": {"shop", providers.Credentials{providers.AccessKeyID: {}, providers.SecretAccessKey: {}}, 0},
		"only a token in a namespace":        {"shop", providers.Credentials{providers.SessionToken: []byte("t")}, 0},
		"an access key in a namespace":       {"shop", providers.Credentials{providers.AccessKeyID: []byte("a"), providers.SecretAccessKey: []byte("s")}, 1},
		"no entries, for the cluster":        {"", nil, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			opened := 0
			s := New(Options{Types: providers.Types{providers.AWSKMS: func(c *providers.Config, given providers.Credentials) (providers.Provider, error) {
				p, err := awskms.Open(c, given)
				if err == nil {
					opened++
					t.Cleanup(p.Close)
				}
				return p, err
			}}, Logger: slog.New(slog.DiscardHandler)})
			e := newEntry(s, types.NamespacedName{Namespace: test.namespace, Name: "aws"})
			e.spec = &v1alpha1.KeyProviderSpec{
				Type: providers.AWSKMS, Endpoints: []v1alpha1.KeyEndpoint{v1alpha1.KeyEndpoint(kms.URL)}, AWSKMS: &v1alpha1.AWSKMSSettings{Region: "a"},
				Credentials: &v1alpha1.KeyProviderCredentials{SecretRef: v1alpha1.SecretReference{Name: "aws-keys"}},
			}
			e.secret = &secret{credentials: test.credentials}
			e.open()
			if opened != test.opened {
				t.Errorf("opened %d providers, expected %d", opened, test.opened)
			}
			if now := e.now.Load(); test.opened == 0 && (now.provider != nil || now.reason != providerreport.InvalidCredentials || !strings.Contains(now.problem, "the credentials have no aws_access_key_id")) {
				t.Errorf("found the state %+v, expected that the credentials are invalid", now)
			}
		})
	}
}
