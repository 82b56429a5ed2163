// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/pool"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
	"github.com/crypto-broker/crypto-broker-operator/controllers/keygateway"
	"github.com/crypto-broker/crypto-broker-operator/controllers/signing"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

const (
	operatorNamespace = "crypto-broker-system"
	gatewayService    = "crypto-broker-operator-key-gateway"
	gatewayUser       = "system:serviceaccount:crypto-broker-system:crypto-broker-operator-key-gateway"
	keyAccessUser     = "system:serviceaccount:crypto-broker-system:crypto-broker-operator-key-access"
)

var (
	access *rest.Config
	// operatorAccess has the rights of the operator.
	operatorAccess *rest.Config
	admin          client.Client
	scheme         = runtime.NewScheme()
	// keyAccessValues are values of the chart for a key access service.
	keyAccessValues = []string{"keyAccess.enabled=true", "keyAccess.configMap=a", "keyAccess.keysSecret=b", "keyAccess.certificateSecret=c"}
	subjects        = []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: gatewayUser}}
)

func TestMain(m *testing.M) {
	if os.Getenv(gatewayEnvironment) != "" {
		os.Exit(m.Run()) // a process of a test, which needs no API server and is killed
	}
	os.Exit(apiserver.Run(m, func(config *rest.Config) error {
		access = config
		for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
			if err := add(scheme); err != nil {
				return err
			}
		}
		var err error
		if admin, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
			return err
		}
		if operatorAccess, err = apiserver.OperatorAccess(context.Background(), config); err != nil {
			return err
		}
		return errors.Join(
			apiserver.CreateFromChart(context.Background(), config, "templates/key-gateway/rbac.yaml", "keyGateway.enabled=true"),
			apiserver.CreateFromChart(context.Background(), config, "templates/key-access/rbac.yaml", keyAccessValues...),
		)
	}))
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// managers are key managers, one for each token in the credentials. Each has the AES key "orders".
type managers struct{ open atomic.Int64 }

func (m *managers) connect(_ *providers.Config, credentials providers.Credentials) (providers.Provider, error) {
	raw := sha256.Sum256(credentials[providers.Token])
	cipher, err := engine.NewAESGCM(raw[:])
	if err != nil {
		return nil, err
	}
	m.open.Add(1)
	return &manager{m, keys.NewSymmetric("orders", cipher)}, nil
}

type manager struct {
	all *managers
	key *keys.Key
}

func (m *manager) Key(_ context.Context, name keys.Name) (*keys.Key, error) {
	if name.ID != "orders" {
		return nil, keys.ErrNotFound
	}
	return m.key, nil
}
func (m *manager) KeyNow(keys.Name) (*keys.Key, error) { return nil, keys.ErrWouldWait }
func (m *manager) Status() []pool.Status {
	return []pool.Status{{
		Endpoint: "https://bao.example:443", Usable: true, Connections: 3, Busy: 1, Reach: pool.Reachable, Version: "2.5.0", Latency: 3 * time.Millisecond,
		Requests: pool.Requests{Served: 7, Took: time.Second, Denied: 2},
	}}
}
func (m *manager) Check(context.Context) (string, error) { return "", nil }
func (m *manager) Close()                                { m.all.open.Add(-1) }

// tenant is a namespace with a pod and a signed set of profiles.
type tenant struct {
	name string
	pod  *corev1.Pod
}

const set = `
- Name: orders
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: kms/orders}]}}
- Name: payments
  API: {EncryptData: {EncryptAlg: aes-gcm, KeySize: 256, NonceStrategy: random, KeyIds: [{Id: kms/orders}]}}
`

func newTenant(t *testing.T, name string, ring signing.Ring) *tenant {
	t.Helper()
	namespace, system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, &corev1.Namespace{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, system); err != nil {
		t.Fatal(err)
	}
	create(t, namespace)
	signature, err := ring.Sign(signed.Statement{
		Format: signed.Format, Audience: signing.Audience(system.UID, namespace), Revision: 1, Time: time.Now().UTC(), Digest: signed.Digest([]byte(set)),
	})
	if err != nil {
		t.Fatal(err)
	}
	n := &tenant{name, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web"},
		Spec:       corev1.PodSpec{ServiceAccountName: "app", Containers: []corev1.Container{{Name: "app", Image: "example.com/app"}}},
	}}
	create(t,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "app"}}, n.pod,
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: v1alpha1.ProfilesConfigMap}, Data: map[string]string{profile.FileName: set, signed.FileName: string(signature)},
		})
	n.place(t, "127.0.0.1")
	return n
}

// addProvider gives the namespace a key manager of its own for the profile orders, with a Secret
// that the gateway may read.
func (n *tenant) addProvider(t *testing.T) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: n.name, Name: "kms"}
	create(t,
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"kms"}, Verbs: []string{"get", "watch"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "kms"}},
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"token": []byte("token of " + n.name)}},
		&v1alpha1.KeyProvider{ObjectMeta: meta, Spec: v1alpha1.KeyProviderSpec{
			Type: providers.OpenBao, Endpoints: []v1alpha1.KeyEndpoint{"https://bao"}, AllowedProfiles: []v1alpha1.AllowedProfileName{"orders"},
			Credentials: &v1alpha1.KeyProviderCredentials{SecretRef: v1alpha1.SecretReference{Name: "kms"}},
		}})
}

// place gives the pod an address, as its kubelet does.
func (n *tenant) place(t *testing.T, address string) {
	t.Helper()
	n.pod.Status.PodIP, n.pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
	if err := admin.Status().Update(t.Context(), n.pod); err != nil {
		t.Fatal(err)
	}
}

// token returns a token of the pod, as the kubelet projects it.
func (n *tenant) token(t *testing.T, audience string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:      []string{audience},
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: n.pod.Name, UID: n.pod.UID},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: "app"}}
	if err := admin.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// issue writes a certificate of a new authority for this machine into a directory, as a volume of
// a Secret changes. It returns the authority.
func issue(t *testing.T, dir string) (authority string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	authority = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write(t, filepath.Join(dir, "tls.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	write(t, filepath.Join(dir, "tls.crt"), authority)
	return authority
}

// keysOf gives the operator its signing keys.
type keysOf signing.Ring

func (k keysOf) Ring(context.Context) (signing.Ring, error) { return signing.Ring(k), nil }

// runForGateways runs the part of the operator that serves gateways, until stop has returned.
func runForGateways(t *testing.T, ring signing.Ring) (operator *keygateway.Gateway, stop func()) {
	t.Helper()
	operator, err := keygateway.New(access, keygateway.Options{Namespace: operatorNamespace, Service: gatewayService, Keys: keysOf(ring)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- operator.Start(ctx) }()
	return operator, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

// mount runs the part of the operator that serves gateways, and returns the volumes of their pods: the
// directory of the certificate and the file of the trusted keys. It also returns the authorities
// that brokers trust.
func mount(t *testing.T, ring signing.Ring) (certificates, trustedKeys, authorities string) {
	t.Helper()
	_, stop := runForGateways(t, ring)
	secret, published := &corev1.Secret{}, &corev1.ConfigMap{}
	apiserver.Eventually(t, "the operator has made the certificate and published its keys", func() error {
		err := errors.Join(
			admin.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: gatewayService + "-tls"}, secret),
			admin.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: gatewayService}, published))
		if err == nil && !strings.Contains(published.Data["trusted-keys"], signed.FormatKey(ring.Current())) {
			err = errors.New("found the keys of another test")
		}
		return err
	})
	stop()
	certificates = t.TempDir()
	write(t, filepath.Join(certificates, "tls.crt"), string(secret.Data["tls.crt"]))
	write(t, filepath.Join(certificates, "tls.key"), string(secret.Data["tls.key"]))
	return certificates, write(t, filepath.Join(t.TempDir(), "keys"), published.Data["trusted-keys"]), published.Data["ca.crt"]
}

func newRing(t *testing.T) signing.Ring {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signing.NewRing(private)
}
