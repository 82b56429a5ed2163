// SPDX-License-Identifier: Apache-2.0

//go:build apiserver

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/cmd/internal/program"
	"github.com/crypto-broker/crypto-broker-operator/test/apiserver"
)

const operatorNamespace = "crypto-broker-system"

// writeCertificate writes a certificate for loopback into a directory, as cert-manager
// writes it into a Secret. It returns the certificate in PEM.
func writeCertificate(t *testing.T, directory string, serial int64) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "webhooks"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate
}

// withDefinitions starts an API server with the resource definitions. Programs find it by their environment.
func withDefinitions(t *testing.T) client.Client {
	t.Helper()
	admin := apiserver.StartFor(t)
	useCluster(t, admin)
	return clientOf(t, admin)
}

func clientOf(t *testing.T, admin *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kubernetes, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes
}

// useCluster makes KUBECONFIG name a file with these credentials.
func useCluster(t *testing.T, admin *rest.Config) {
	t.Helper()
	t.Setenv("KUBECONFIG", writeKubeconfig(t, admin))
}

// writeKubeconfig writes credentials into a file and returns its path.
func writeKubeconfig(t *testing.T, access *rest.Config) string {
	t.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["test"] = &clientcmdapi.Cluster{Server: access.Host, CertificateAuthorityData: access.CAData}
	file.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: access.CertData, ClientKeyData: access.KeyData, Token: access.BearerToken}
	file.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	file.CurrentContext = "test"
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*file, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// startOperator runs the operator in a process of its own until the test ends.
func startOperator(t *testing.T, arguments ...string) {
	t.Helper()
	var log logBuffer
	operator := exec.CommandContext(t.Context(), os.Args[0])
	operator.Env = append(os.Environ(), argumentsVariable+"="+strings.Join(arguments, " "))
	operator.Stderr = &log
	if err := operator.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = operator.Wait() // the end of the test has killed the process
		if t.Failed() {
			t.Logf("the log of the operator:\n%s", &log)
		}
	})
}

func create(t *testing.T, kubernetes client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := kubernetes.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// tokenOf makes an account in the operator's namespace and returns a token of it.
func tokenOf(t *testing.T, kubernetes client.Client, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name}}
	create(t, kubernetes, account)
	request := &authenticationv1.TokenRequest{}
	if err := kubernetes.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// check runs the program with the command check, and returns its exit code and its output.
func check(ctx context.Context) (int, string) {
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"check"}, func(string) (string, bool) { return operatorNamespace, true }, &stdout, &stderr)
	return code, stdout.String() + stderr.String()
}

func TestCheckFailsWhereNoWebhookIsAsked(t *testing.T) {
	kubernetes := withDefinitions(t)
	create(t, kubernetes, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}})
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	if code, said := check(ctx); code != program.ExitFailed || !strings.Contains(said, "found no refusal, expected the operator's webhook to refuse spec.deprecation.replacedBy") {
		t.Errorf("found the exit code %d with %q, expected %d and that nobody refused the wrong profile", code, said, program.ExitFailed)
	}
}

func TestTheOperatorServesACertificateOfOthersAndMetricsToWhomTheAPIServerLets(t *testing.T) {
	kubernetes := withDefinitions(t)
	directory := t.TempDir()
	bundle := writeCertificate(t, directory, 1)
	metrics, _ := reserve(t)
	health, _ := reserve(t)
	webhooks, port := reserve(t)
	startOperator(t, "--namespace="+operatorNamespace, "--leader-elect=false", "--broker-image=broker:1", "--metrics-secure", "--webhook-certificate-dir="+directory,
		"--metrics-bind-address="+metrics, "--health-probe-bind-address="+health, "--webhook-port="+port)
	path, fail, none, exact := "https://"+webhooks+"/validate-cryptobroker-io-v1alpha1-cryptoprofile", admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Exact
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "crypto-broker-operator"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "cryptoprofile.validate.cryptobroker.io", FailurePolicy: &fail, SideEffects: &none, MatchPolicy: &exact, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &path, CABundle: bundle},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"v1alpha1"}, Resources: []string{"cryptoprofiles"}},
			}},
		}},
	}
	create(t, kubernetes, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}, configuration,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: operatorNamespace, Name: "prometheus"}},
		})
	eventually(t, "the operator is ready", func() error {
		code, body, err := answer("http://" + health + "/readyz")
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("/readyz has the code %d, %q: %w", code, body, err)
		}
		return nil
	})
	if code, said := check(t.Context()); code != program.ExitOK {
		t.Errorf("check ended with %d: %s", code, said)
	}

	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(bundle)
	reader := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}
	read := func(token string) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+metrics+"/metrics", nil)
		if err != nil {
			return 0, err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := reader.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	for sentence, test := range map[string]struct {
		token string
		want  int
	}{
		"nobody":                             {"", http.StatusUnauthorized},
		"somebody with a token that is none": {"none", http.StatusUnauthorized},
		"an account without the right":       {tokenOf(t, kubernetes, "other"), http.StatusForbidden},
		"an account that may get /metrics":   {tokenOf(t, kubernetes, "prometheus"), http.StatusOK},
	} {
		if code, err := read(test.token); err != nil || code != test.want {
			t.Errorf("%s reads metrics with the code %d, expected %d: %v", sentence, code, test.want, err)
		}
	}

	// A renewed certificate is served without a restart.
	trusted.AppendCertsFromPEM(writeCertificate(t, directory, 2))
	eventually(t, "the renewed certificate is served", func() error {
		connection, err := tls.Dial("tcp", webhooks, &tls.Config{RootCAs: trusted})
		if err != nil {
			return err
		}
		serial := connection.ConnectionState().PeerCertificates[0].SerialNumber
		if err := connection.Close(); err != nil || serial.Int64() != 2 {
			return fmt.Errorf("found the certificate %s: %w", serial, err)
		}
		return nil
	})
}
