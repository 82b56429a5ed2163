// SPDX-License-Identifier: Apache-2.0

//go:build e2e && keymanagers

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	gatewayv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/gateway/v1"
	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/gateway"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/kmip"
	"github.com/crypto-broker/crypto-broker-operator/broker/keys/providers"
	"github.com/crypto-broker/crypto-broker-operator/test/environment"
	"github.com/crypto-broker/crypto-broker-operator/test/kmipserver"
	"github.com/crypto-broker/crypto-broker-operator/test/pykmip"
	"github.com/crypto-broker/crypto-broker-operator/test/workload"
)

const (
	gatewayName  = environment.Release + "-key-gateway"
	kmipSecret   = "e2e-kmip"
	providerName = "e2e-hsm"
	providerKey  = "orders"
	// gatewayOutage bounds how long calls may fail because one replica of the gateway was
	// killed. Without another replica, they would fail for as long as nobody starts it.
	gatewayOutage = 30 * time.Second
	// managerOutage bounds how long calls may fail after the key manager answers again.
	managerOutage = 60 * time.Second
)

// gatewayUsers are pods that encrypt through the key gateway under a key in PyKMIP.
type gatewayUsers struct {
	servers   *kmipserver.Servers
	manager   *kmip.Provider
	namespace string
	apps      []corev1.Pod
}

// startGatewayUsers installs the chart with the key gateway and values, and starts two pods.
func startGatewayUsers(t testing.TB, values ...string) gatewayUsers {
	t.Helper()
	restoreChart(t)
	servers := pykmip.StartAt(t, hostAddress(t), 1)
	manager := openKeyManager(t, servers)
	must(t, manager.CreateAES(t.Context(), providerKey, 256))
	secret := createKMIPSecret(t, servers)
	_, err := shared.helm.Install(t.Context(), environment.Chart(shared.Repository), &shared.Images,
		slices.Concat(shared.Images.KeyGateway(), []string{"keyGateway.secrets={" + secret.Name + "}"}, values)...)
	must(t, err)
	progress("the key gateway is installed")
	t.Cleanup(func() {
		if t.Failed() {
			printKubectl(timeoutContext(t, time.Minute), t, "-n", environment.Namespace, "logs", "--selector=app.kubernetes.io/component=key-gateway", "--tail=40", "--prefix")
		}
	})

	tenant := map[string]string{"e2e.cryptobroker.io/keys": providerName}
	namespace := newNamespace(t, tenant)
	createKeyProvider(t, servers, secret, tenant)
	createEncryptionProfiles(t, namespace)
	deployment := appDeployment(namespace, "app", 2, map[string]string{"ENCRYPT_WITH": providerName + "/" + providerKey})
	deployment.Spec.Template.Spec.Containers[0].Image = shared.Images.Image("client-app")
	must(t, shared.client.Create(t.Context(), deployment))
	apps := readyPods(t, namespace, "app=app", 2)
	for i := range apps {
		awaitCalls(t, &apps[i], statsPort, nil, 1) // there is no readiness probe
	}
	progress("the pods call")
	return gatewayUsers{servers, manager, namespace, apps}
}

// uninstallGateway installs the chart with its own values again.
func uninstallGateway(t testing.TB) {
	t.Helper()
	progress("the key gateway is uninstalled")
	_, err := shared.helm.Install(t.Context(), environment.Chart(shared.Repository), &shared.Images)
	must(t, err)
	awaitOperatorPods(t, replicas)
}

func TestPodsEncryptUnderAKeyInAKeyManagerWhileItsPartsAreRestarted(t *testing.T) {
	users := startGatewayUsers(t)
	servers, apps := users.servers, users.apps
	t.Run("all calls succeed once the provider is ready", func(t *testing.T) {
		awaitKeyProviderReady(t)
		during(t, apps, "nothing is restarted", func() { awaitEncryption(t, apps, 100) }).expectNoFailure(t)
	})
	// Brokers ask for the version of a key once a minute, and the test waits for that below.
	must(t, users.manager.Rotate(t.Context(), providerKey))
	t.Run("a token is refused from another address than its pod's", func(t *testing.T) {
		expectStolenTokenRefused(t, users.namespace, &apps[0])
	})
	t.Run("calls go on when the gateways are killed in turn", func(t *testing.T) {
		gateways := awaitGateways(t, nil)
		during(t, apps, "a gateway is killed by signal 9", func() {
			killGateway(t, &gateways[0])
			awaitGateways(t, func(found []corev1.Pod) bool { return restarts(found) == 1 })
			awaitEncryption(t, apps, 100)
		}).expectUnavailableFor(t, gatewayOutage)
		during(t, apps, "the other gateway is deleted by force", func() {
			must(t, shared.client.Delete(t.Context(), &gateways[1], client.GracePeriodSeconds(0)))
			awaitGateways(t, func(found []corev1.Pod) bool {
				return found[0].Name != gateways[1].Name && found[1].Name != gateways[1].Name
			})
			awaitEncryption(t, apps, 100)
		}).expectUnavailableFor(t, gatewayOutage)
	})
	t.Run("calls fail while the key manager is away, and succeed after its restart", func(t *testing.T) {
		gateways := awaitGateways(t, nil)
		var back time.Time
		during(t, apps, "the key manager is away", func() {
			before := statsOfAll(t, apps)
			servers.Kill(t, 0)
			awaitFailures(t, apps, before, 10)
			servers.Restart(t, 0)
			back = time.Now()
			awaitEncryption(t, apps, 100)
		}).expectUnavailableFor(t, managerOutage, back)
		during(t, apps, "the key manager is back", func() { awaitEncryption(t, apps, 100) }).expectNoFailure(t)
		if now := awaitGateways(t, nil); restarts(now) != restarts(gateways) {
			t.Errorf("the gateways were restarted %d times, expected never", restarts(now)-restarts(gateways))
		}
	})
	t.Run("new ciphertexts name the version of a rotated key, and old ones are decrypted", func(t *testing.T) {
		during(t, apps, "the rotated key is awaited", func() {
			for i := range apps {
				eventually(t, patience, "new ciphertexts name the new version", func() error {
					found, err := encryptionOf(t, &apps[i])
					if err == nil && (len(found.KeyIDs) != 2 || !strings.HasPrefix(found.KeyIDs[1], providerName+"/"+providerKey+"#")) {
						err = fmt.Errorf("ciphertexts named %q", found.KeyIDs)
					}
					return err
				})
			}
			awaitEncryption(t, apps, 100)
		}).expectNoFailure(t)
	})
	expectNeverRestarted(t, apps)
	uninstallGateway(t)
}

// kmipCredentials are the entries of a Secret for servers.
func kmipCredentials(t testing.TB, servers *kmipserver.Servers) map[string][]byte {
	t.Helper()
	entries := map[string][]byte{}
	for entry, path := range map[string]string{
		providers.ClientCertificate: servers.Certificate, providers.ClientKey: servers.Key, providers.Authorities: servers.Authority,
	} {
		content, err := os.ReadFile(path)
		must(t, err)
		entries[entry] = content
	}
	return entries
}

// openKeyManager returns a provider with which the test makes and rotates keys.
func openKeyManager(t testing.TB, servers *kmipserver.Servers) *kmip.Provider {
	t.Helper()
	config := &providers.Config{Name: providerName, Type: providers.KMIP, Endpoints: servers.Addresses}
	opened, err := providers.Types{providers.KMIP: kmip.Open}.Open(config, kmipCredentials(t, servers))
	must(t, err)
	t.Cleanup(opened.Close)
	return opened.(*kmip.Provider)
}

// createForTest creates an object that is deleted at the end of the test.
func createForTest(t testing.TB, object client.Object) {
	t.Helper()
	must(t, shared.client.Create(t.Context(), object))
	t.Cleanup(func() {
		if err := shared.client.Delete(timeoutContext(t, time.Minute), object); err != nil {
			t.Errorf("removing the %T %s: %v", object, object.GetName(), err)
		}
	})
}

func createKMIPSecret(t testing.TB, servers *kmipserver.Servers) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: kmipSecret, Namespace: environment.Namespace}, Data: kmipCredentials(t, servers)}
	createForTest(t, secret)
	return secret
}

func createKeyProvider(t testing.TB, servers *kmipserver.Servers, secret *corev1.Secret, namespaces map[string]string) {
	t.Helper()
	provider := &v1alpha1.ClusterKeyProvider{ObjectMeta: metav1.ObjectMeta{Name: providerName}}
	provider.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: namespaces}
	provider.Spec.Type = string(providers.KMIP)
	provider.Spec.CacheTime = "1s"
	for _, each := range servers.Addresses {
		provider.Spec.Endpoints = append(provider.Spec.Endpoints, v1alpha1.KeyEndpoint(each))
	}
	provider.Spec.Credentials = &v1alpha1.KeyProviderCredentials{SecretRef: v1alpha1.SecretReference{Name: secret.Name}}
	createForTest(t, provider)
}

// createEncryptionProfiles makes the profile "Data", which encrypts with the key of the provider, and
// "Default", which hashes, and waits until the namespace has both.
func createEncryptionProfiles(t testing.TB, namespace string) {
	t.Helper()
	createProfile(t, namespace, "sha3-512")
	data := &v1alpha1.CryptoProfile{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: namespace}}
	data.Spec.ProfileName = "Data"
	data.Spec.API.EncryptData = &v1alpha1.EncryptData{EncryptAlg: "aes-gcm", KeySize: 256, NonceStrategy: "random",
		KeyIDs: []v1alpha1.KeyID{{ID: providerName + "/" + providerKey}}}
	must(t, shared.client.Create(t.Context(), data))
	// Only pods that are created after the profile get a token for the gateway. If the operator writes the authorities later,
	// kubelets bring them into pods only after about a minute.
	eventually(t, patience, "the namespace has the profile Data and the authorities of the gateway", func() error {
		found := profilesConfigMap(t, namespace).Data
		if !strings.Contains(found["Profiles.yaml"], providerName) || found[contract.KeyGatewayAuthorities] == "" {
			return fmt.Errorf("found the entries %v", found)
		}
		return nil
	})
}

func awaitKeyProviderReady(t testing.TB) {
	t.Helper()
	eventually(t, patience, "the key provider is ready", func() error {
		found := &v1alpha1.ClusterKeyProvider{}
		if err := shared.client.Get(t.Context(), client.ObjectKey{Name: providerName}, found); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("its status is %+v", found.Status)
		}
		return nil
	})
}

// awaitGateways waits until both replicas of the gateway are ready and fulfil a condition, if there is one.
func awaitGateways(t testing.TB, fulfilled func([]corev1.Pod) bool) []corev1.Pod {
	t.Helper()
	var found []corev1.Pod
	eventually(t, patience, "both gateways are ready again", func() error {
		found = readyPods(t, environment.Namespace, "app.kubernetes.io/component=key-gateway", 2)
		if fulfilled != nil && !fulfilled(found) {
			return fmt.Errorf("the gateways are %s and %s, with %d restarts", found[0].Name, found[1].Name, restarts(found))
		}
		return nil
	})
	return found
}

// restarts counts how often the containers of pods were restarted.
func restarts(pods []corev1.Pod) (count int32) {
	for _, pod := range pods {
		for _, each := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			count += each.RestartCount
		}
	}
	return count
}

func expectNeverRestarted(t testing.TB, apps []corev1.Pod) {
	t.Helper()
	now := readyPods(t, apps[0].Namespace, "app=app", len(apps))
	for i := range now {
		if now[i].Name != apps[0].Name && now[i].Name != apps[1].Name {
			t.Errorf("found the new pod %s", now[i].Name)
		}
	}
	if count := restarts(now); count != 0 {
		t.Errorf("containers of the application's pods were restarted %d times, expected never", count)
	}
}

// killGateway ends the process of a gateway with signal 9.
func killGateway(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	process := runningTasks(t)[pod.Status.ContainerStatuses[0].ContainerID]
	if process == "" {
		t.Fatalf("the gateway %s does not run: %s", pod.Name, workload.DescribeContainers(pod))
	}
	_, err := shared.cluster.Exec(t.Context(), "kill", "-KILL", process)
	must(t, err)
}

// expectStolenTokenRefused calls a gateway from this machine with a token that is bound to a pod and that the API server
// accepts.
func expectStolenTokenRefused(t testing.TB, namespace string, pod *corev1.Pod) {
	t.Helper()
	if err := callGateway(t, namespace, tokenOf(t, pod)); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the gateway answers %v, expected Unauthenticated", err)
	}
}

// tokenOf returns a token for the gateway that is bound to a pod.
func tokenOf(t testing.TB, pod *corev1.Pod) string {
	t.Helper()
	made, err := shared.clientset.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(t.Context(), pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{contract.KeyGatewayAudience},
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
	}, metav1.CreateOptions{})
	must(t, err)
	review, err := shared.clientset.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: made.Status.Token, Audiences: []string{contract.KeyGatewayAudience}}}, metav1.CreateOptions{})
	must(t, err)
	if !review.Status.Authenticated {
		t.Fatalf("the API server does not accept the token: %s", review.Status.Error)
	}
	return made.Status.Token
}

// callGateway asks a gateway from this machine for the key of the provider, with a token and
// certificates of the client.
func callGateway(t testing.TB, namespace, token string, certificates ...tls.Certificate) error {
	t.Helper()
	service, err := shared.clientset.CoreV1().Services(environment.Namespace).Get(t.Context(), gatewayName, metav1.GetOptions{})
	must(t, err)
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM([]byte(profilesConfigMap(t, namespace).Data[contract.KeyGatewayAuthorities])) {
		t.Fatal("the namespace has no authorities of the gateway")
	}
	conn, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(service.Spec.ClusterIP, "443"), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: authorities, ServerName: gatewayName + "." + environment.Namespace + ".svc", Certificates: certificates,
	})))
	must(t, err)
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err = gatewayv1.NewKeyGatewayServiceClient(conn).DescribeKey(
		metadata.AppendToOutgoingContext(ctx, gateway.TokenHeader, gateway.TokenScheme+token),
		&gatewayv1.DescribeKeyRequest{Use: &gatewayv1.KeyUse{Profile: "Data", Operation: "EncryptData", KeyId: providerName + "/" + providerKey}})
	return err
}
