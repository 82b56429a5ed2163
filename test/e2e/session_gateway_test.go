// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/test/app/stats"
	"github.com/crypto-broker/crypto-broker-operator/test/redisserver"
	"github.com/crypto-broker/crypto-broker-operator/test/sessionclient"
)

// manifest matches the first block of YAML of a page.
var manifest = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// otherPort is a port of the pod that has nothing to do with the gateway.
const otherPort = 9090

// The application is the demo application, which knows nothing about sessions. Another container of the pod serves a port without
// the gateway.
func TestAPodServesEncryptedSessionsAsThePageShows(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	createProfile(t, namespace, "sha-384") // from the calls that the application makes by itself
	profile, deployment, service, ingress := objectsOfThePage(t)
	pod := &deployment.Spec.Template.Spec
	documented := pod.Containers[0]
	pod.Containers[0] = appContainer(documented.Name, map[string]string{"STATS_ADDRESS": "127.0.0.1:8080"})
	pod.Containers[0].ReadinessProbe = documented.ReadinessProbe
	other := appContainer("other", map[string]string{"STATS_ADDRESS": fmt.Sprintf(":%d", otherPort)})
	other.Ports = []corev1.ContainerPort{{Name: "other", ContainerPort: otherPort}}
	probe := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/stats", Port: intstr.FromString("other")}}
	other.ReadinessProbe, other.LivenessProbe = &corev1.Probe{ProbeHandler: probe}, &corev1.Probe{ProbeHandler: probe}
	pod.Containers = append(pod.Containers, other)
	service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: "other", Port: otherPort, TargetPort: intstr.FromString("other")})
	for _, each := range []client.Object{profile, deployment, service, ingress} {
		each.SetNamespace(namespace)
		must(t, shared.client.Create(t.Context(), each))
	}
	app := &readyPods(t, namespace, "app=shop", 1)[0] // calls of the probe through the gateway, and of the probe of the other port
	server := func(port int) string { return "http://" + net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(port)) }

	plain := sessionclient.New(t, server(int(service.Spec.Ports[0].Port)), false)
	get := func(server, path string) (int, string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server+path, nil)
		must(t, err)
		response, err := plain.HTTP.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		return response.StatusCode, string(body), err
	}
	eventually(t, patience, "the Service reaches the gateway", func() error {
		_, _, err := get(plain.URL, "/health")
		return err
	})
	for _, each := range []struct {
		server, path string
		status       int
		body         string
	}{
		{plain.URL, "/health", http.StatusOK, `{"status":"ok","timestamp":`},
		{plain.URL, "/healthz", http.StatusOK, ""},
		{plain.URL, "/stats", http.StatusForbidden, `{"error":"ENCRYPTION_REQUIRED"}`},
		{plain.URL, "/echo", http.StatusForbidden, `{"error":"ENCRYPTION_REQUIRED"}`},
		{server(otherPort), "/echo", http.StatusOK, `{"method":"GET","path":"/echo"`},
	} {
		if status, body, err := get(each.server, each.path); err != nil || status != each.status || !strings.HasPrefix(body, each.body) {
			t.Errorf("GET %s%s: %d %s (%v), expected %d %s", each.server, each.path, status, body, err, each.status, each.body)
		}
	}
	if conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(t.Context(), "tcp", net.JoinHostPort(app.Status.PodIP, "8080")); err == nil {
		_ = conn.Close()
		t.Error("the port of the application is open outside of the pod")
	}
	for protocol, clientID := range map[string]string{"session-v1": "", "session-v2": "shop-1"} {
		c := sessionclient.New(t, plain.URL, false).Connect(clientID)
		r := c.Request(http.MethodPost, "/echo", `{"amount":5}`)
		r.Header["X-Session-Id"] = []string{"S-00000000000000000000000000000000"} // sessions of somebody else
		repeated := r.Clone(t.Context())
		var err error
		repeated.Body, err = r.GetBody()
		must(t, err)
		answer, body := c.Do(r)
		text, err := c.Read("/echo", answer, body)
		must(t, err)
		var got stats.Echo
		must(t, json.Unmarshal([]byte(text), &got))
		h := got.Header.Get
		if got.Method != http.MethodPost || got.Path != "/echo" || got.Body != `{"amount":5}` || len(got.Header["X-Session-Id"]) != 1 ||
			h("X-Session-Id") != c.ID || h("X-Session-Protocol") != protocol || h("X-Session-Client-Id") != clientID {
			t.Errorf("the application got %+v of the session %s", got, c.ID)
		}
		if answer, body := c.Do(repeated); answer.StatusCode != http.StatusUnauthorized || string(body) != `{"error":"SESSION_EXPIRED"}` {
			t.Errorf("a request that is sent again: %s: %s", answer.Status, body)
		}
	}
	expectNoFailure(t, app, awaitCalls(t, app, otherPort, nil, 5))
}

func TestPodsShareSessionsInRedis(t *testing.T) {
	t.Parallel()
	const password = "password-of-the-test"
	redis := redisserver.StartAt(t, hostAddress(t), "--requirepass", password)
	namespace := newNamespace(t, nil)
	createProfile(t, namespace, "sha-384") // from the calls that the application makes by itself
	profile, _, _, _ := objectsOfThePage(t)
	profile.Namespace, profile.Spec.API.Session.Store = namespace, "redis"
	must(t, shared.client.Create(t.Context(), profile))
	for name, data := range map[string]map[string][]byte{
		"session-keys": {"sessions.bin": []byte("thirty-two bytes of a test's key")},
		"session-redis": {
			"Redis.yaml": []byte("Addresses: [" + strconv.Quote(redis.Address) + "]\nWithoutTLS: true\nWrappingKey: sessions\n"), "password": []byte(password),
		},
	} {
		secret := &corev1.Secret{Data: data}
		secret.Name, secret.Namespace = name, namespace
		must(t, shared.client.Create(t.Context(), secret))
	}
	annotations := inject("true")
	annotations[contract.SessionGatewayAnnotation] = "8443:8080"
	annotations[contract.KeysAnnotation], annotations[contract.SessionRedisAnnotation] = "session-keys", "session-redis"
	var pods []*corev1.Pod
	var clients []*sessionclient.Client
	for range 2 {
		pod := createPod(t, appPod(namespace, annotations, map[string]string{"STATS_ADDRESS": "127.0.0.1:8080"}))
		pods = append(pods, pod)
		clients = append(clients, sessionclient.New(t, "http://"+net.JoinHostPort(pod.Status.PodIP, "8443"), false))
	}
	first, second := clients[0].Connect(""), clients[1]
	r := first.Request(http.MethodPost, "/echo", "buy")
	repeated := r.Clone(t.Context())
	var err error
	repeated.Body, err = r.GetBody()
	must(t, err)
	if answer, body := first.Do(r); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", answer.Status, body)
	}
	send := func(r *http.Request) (sessionclient.Answer, []byte) {
		r.URL.Host = strings.TrimPrefix(second.URL, "http://")
		r.URL.Opaque, r.URL.Path = "", "/echo"
		return second.Do(r)
	}
	if answer, body := send(repeated); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a request that the other pod has opened: %s: %s", answer.Status, body)
	}
	must(t, shared.client.Delete(t.Context(), pods[0], client.GracePeriodSeconds(0)))
	answer, body := send(first.Request(http.MethodPost, "/echo", "buy"))
	text, err := first.Read("/echo", answer, body)
	if err != nil || !strings.Contains(text, `"body":"buy"`) {
		t.Errorf("the pod that is left answers %s: %s (%v)", answer.Status, text, err)
	}
	if found := redis.Ask(t, "--no-auth-warning", "-a", password, "dbsize"); found != "3" {
		t.Errorf("Redis has %s entries, expected the session, its nonces, and the sessions of its caller", found)
	}
}

// objectsOfThePage reads the objects of the page of the session gateway.
func objectsOfThePage(t *testing.T) (profile *v1alpha1.CryptoProfile, deployment *appsv1.Deployment, service *corev1.Service, ingress *networkingv1.Ingress) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(shared.Repository, "docs", "session-gateway.md"))
	must(t, err)
	block := manifest.FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no manifest")
	}
	documents := strings.Split(string(block[1]), "---\n")
	profile, deployment, service, ingress = &v1alpha1.CryptoProfile{}, &appsv1.Deployment{}, &corev1.Service{}, &networkingv1.Ingress{}
	objects := []any{profile, deployment, service, ingress}
	if len(documents) != len(objects) {
		t.Fatalf("found %d objects in the page, expected %d", len(documents), len(objects))
	}
	for i, each := range objects {
		must(t, yaml.UnmarshalStrict([]byte(documents[i]), each))
	}
	return profile, deployment, service, ingress
}
