// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/go-jose/go-jose/v4"
	"google.golang.org/protobuf/encoding/protojson"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/issuer"
)

// nation is a key access service that the chart's templates install.
type nation struct{ release, namespace string }

// fullname is the name of the objects of the service.
func (n nation) fullname() string {
	if !strings.Contains(n.release, environment.Release) {
		return n.release + "-" + environment.Release + "-key-access"
	}
	return n.release + "-key-access"
}

// host is the name by which pods reach the service.
func (n nation) host() string { return n.fullname() + "." + n.namespace + ".svc" }

// nations has both nations, the issuer that they trust, and the self-signed certificate that all three use.
type nations struct {
	a, b        nation
	idp         *issuer.Issuer
	certificate tls.Certificate
	encoded     map[string]string
}

// startNations installs nation A in the operator's namespace, where the operator writes the status of its resources, and nation
// B in another one.
func startNations(t *testing.T, other string) *nations {
	t.Helper()
	n := &nations{a: nation{environment.Release, environment.Namespace}, b: nation{"nation-b", other}}
	address := hostAddress(t)
	n.makeCertificate(t, address)
	n.idp = issuer.Start(t, issuer.Options{Host: address, Certificate: &n.certificate})
	for each, manifest := range map[nation]string{n.a: "nation-a.yaml", n.b: "nation-b.yaml"} {
		createForNation(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "authorities", Namespace: each.namespace}, Data: map[string]string{"ca.crt": n.encoded["tls.crt"]}})
		for name, entries := range map[string]map[string]string{
			"key-access-tls":        n.encoded,
			"key-access-keys":       {"rsa-1.key": newKey(t, true)},
			"key-access-federation": {"statements.key": newKey(t, false)},
		} {
			createForNation(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: each.namespace}, StringData: entries})
		}
		n.apply(t, each.namespace, manifest)
		printed, err := shared.helm.Run(t.Context(), "template", each.release, environment.Chart(shared.Repository), "--namespace", each.namespace,
			"--show-only", "templates/key-access/*.yaml", "--set", strings.Join([]string{
				"keyAccess.enabled=true", "keyAccess.replicas=1", "keyAccess.configMap=key-access", "keyAccess.keysSecret=key-access-keys",
				"keyAccess.certificateSecret=key-access-tls", "keyAccess.federationSecret=key-access-federation", "keyAccess.authoritiesConfigMap=authorities",
				"keyGateway.image.registry=" + shared.Images.Registry, "keyGateway.image.tag=" + shared.Images.Tag,
			}, ","))
		must(t, err)
		applyForTest(t, each.namespace, printed)
	}
	for _, each := range []nation{n.a, n.b} {
		n.awaitRollout(t, each)
	}
	return n
}

func (n *nations) awaitRollout(t *testing.T, each nation) {
	t.Helper()
	_, err := kubectl(t, "", "rollout", "status", "deployment/"+each.fullname(), "--namespace", each.namespace, "--timeout", "3m")
	if err != nil {
		printKubectl(timeoutContext(t, time.Minute), t, "-n", each.namespace, "logs", "deployment/"+each.fullname(), "--tail=20")
		t.Fatal(err)
	}
}

// manifest is a file of the example, with the names of this cluster.
func (n *nations) manifest(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shared.Repository, "docs", "examples", "two-nations", name))
	must(t, err)
	return strings.NewReplacer("keys.a.example", n.a.host(), "keys.b.example", n.b.host(), "https://idp.a.example", n.idp.URL).Replace(string(text))
}

// apply applies a file of the example until the end of the test.
func (n *nations) apply(t *testing.T, namespace, name string) {
	t.Helper()
	applyForTest(t, namespace, n.manifest(t, name))
}

// applyForTest applies objects, which are deleted at the end of the test.
func applyForTest(t *testing.T, namespace, text string) {
	t.Helper()
	_, err := kubectl(t, text, "apply", "--namespace", namespace, "--filename", "-")
	must(t, err)
	t.Cleanup(func() {
		if _, err := shared.cluster.KubectlRun(timeoutContext(t, time.Minute), strings.NewReader(text), "delete", "--namespace", namespace,
			"--ignore-not-found", "--wait=false", "--filename", "-"); err != nil {
			t.Errorf("removing what was applied: %v", err)
		}
	})
}

func createForNation(t *testing.T, object client.Object) {
	t.Helper()
	must(t, shared.client.Create(t.Context(), object))
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(shared.client.Delete(timeoutContext(t, time.Minute), object)); err != nil {
			t.Errorf("removing the %T %s: %v", object, object.GetName(), err)
		}
	})
}

// newKey is a private key in PEM: RSA, or ECDSA on P-256.
func newKey(t *testing.T, ofRSA bool) string {
	t.Helper()
	var key any
	var err error
	if ofRSA {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func (n *nations) makeCertificate(t *testing.T, address string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nations"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{n.a.host(), n.b.host()}, IPAddresses: []net.IP{net.ParseIP(address)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	n.encoded = map[string]string{
		"tls.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		"tls.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}
	n.certificate, err = tls.X509KeyPair([]byte(n.encoded["tls.crt"]), []byte(n.encoded["tls.key"]))
	must(t, err)
}

// claims are the claims of a member of the mission, for both nations.
func claims() map[string]any {
	return map[string]any{"aud": []string{"nation-a", "nation-b"}, "missions": []string{"alpha"}}
}

// sharesOfFile has the key access objects of a file: the shares of its data key.
type sharesOfFile struct {
	Policy    string            `json:"policy"`
	KeyAccess []json.RawMessage `json:"keyAccess"`
}

func readShares(t *testing.T, file []byte) (found sharesOfFile) {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	must(t, err)
	manifest, err := archive.Open("0.manifest.json")
	must(t, err)
	var content struct {
		EncryptionInformation *sharesOfFile `json:"encryptionInformation"`
	}
	content.EncryptionInformation = &found
	must(t, json.NewDecoder(manifest).Decode(&content))
	must(t, manifest.Close())
	return found
}

// askA asks nation A alone for all shares of a file, and returns the results in their order.
func (n *nations) askA(t *testing.T, file []byte) (results []string, err error) {
	t.Helper()
	service, err := shared.clientset.CoreV1().Services(n.a.namespace).Get(t.Context(), n.a.fullname(), metav1.GetOptions{})
	must(t, err)
	authorities := x509.NewCertPool()
	authorities.AddCert(n.certificate.Leaf)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS13},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(service.Spec.ClusterIP, "443"))
		},
	}
	defer transport.CloseIdleConnections()

	key, err := issuer.NewKey(jose.ES256)
	must(t, err)
	prover := issuer.Prover{Key: key, Algorithm: jose.ES256}
	session, err := issuer.NewKey(jose.RS256)
	must(t, err)
	public, err := x509.MarshalPKIXPublicKey(session.Public())
	must(t, err)
	described := readShares(t, file)
	wanted := &kas.UnsignedRewrapRequest_WithPolicyRequest{Policy: &kas.UnsignedRewrapRequest_WithPolicy{Id: "policy", Body: described.Policy}}
	for i, each := range described.KeyAccess {
		object := &kas.KeyAccess{}
		must(t, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(each, object))
		wanted.KeyAccessObjects = append(wanted.KeyAccessObjects, &kas.UnsignedRewrapRequest_WithKeyAccessObject{KeyAccessObjectId: fmt.Sprint(i), KeyAccessObject: object})
	}
	text, err := protojson.Marshal(&kas.UnsignedRewrapRequest{
		ClientPublicKey: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		Requests:        []*kas.UnsignedRewrapRequest_WithPolicyRequest{wanted},
	})
	must(t, err)

	const procedure = "/kas.AccessService/Rewrap"
	contents := n.idp.Claims("reader", key)
	for name, value := range claims() {
		contents[name] = value
	}
	token := n.idp.Token(contents)
	request := connect.NewRequest(&kas.RewrapRequest{SignedRequestToken: issuer.Sign(prover.SigningKey(), map[string]any{}, map[string]any{"requestBody": string(text)})})
	request.Header().Set("Authorization", "DPoP "+token)
	request.Header().Set("DPoP", prover.Proof(http.MethodPost, "https://"+n.a.host()+procedure, token))
	reply, err := connect.NewClient[kas.RewrapRequest, kas.RewrapResponse](&http.Client{Transport: transport, Timeout: 20 * time.Second}, "https://"+n.a.host()+procedure).CallUnary(t.Context(), request)
	if err != nil {
		return nil, err
	}
	for _, result := range reply.Msg.GetResponses()[0].GetResults() {
		results = append(results, strings.TrimSpace(result.GetStatus()+" "+result.GetError()))
	}
	return results, nil
}
